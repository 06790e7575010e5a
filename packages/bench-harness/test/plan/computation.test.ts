import { describe, expect, it } from 'vitest';
import { UsageError } from '../../src/errors.ts';
import { calibrate, computationTimes } from '../../src/plan/computation.ts';
import { interferenceOf } from '../../src/plan/machine.ts';
import { stepWork, wholeStepWork } from '../../src/plan/step-work.ts';
import { withCopies } from '../../src/plan/setting.ts';
import { measuredStep, parameters, setting, toyMachine } from './toy-machine.ts';

const [tokens, d, ff, layers, vocabulary, context] = [16, 16, 32, 2, 1000, 8];
const layerFlops = 2 * tokens * layers * (4 * d * d + 3 * d * ff);
const headFlops = 2 * tokens * d * vocabulary;
const attended = (4 * 2 * context ** 2 * d * layers) / 2;

describe('the work of a step', () => {
  it('is products, half of attention, and each tensor read and written', () => {
    const { forward, backward, optimizer, modelFlops } = wholeStepWork(setting);
    expect(forward).toEqual({
      ...{ flops: layerFlops + headFlops, attended, attendedBackward: 0 },
      bytes: 2 * tokens * (layers * (12 * d + 3 * ff) + 2 * vocabulary) + 6 * parameters,
    });
    expect(backward).toEqual({
      ...{ flops: 2 * (layerFlops + headFlops), attended: 0, attendedBackward: 2.5 * attended },
      bytes: 2 * tokens * (layers * (14 * d + 5 * ff) + 4 * vocabulary),
    });
    expect(optimizer.bytes).toBe(28 * parameters);
    expect(modelFlops).toBe(3 * (layerFlops + headFlops) + 3.5 * attended);
  });

  it('is that of costOf in plain attention', async () => {
    const { costOf, presets } = await import('@roofline/transformer');
    const { batch } = setting;
    for (const config of [presets.tiny, presets['8b']]) {
      const work = wholeStepWork({ ...setting, shape: config, context: 256, attention: 'plain' });
      expect(work.forward.flops).toBe(costOf(config, { batch, context: 256 }).forwardFlops);
      expect(work.modelFlops).toBe(costOf(config, { batch, context: 256 }).stepFlops);
    }
  });

  it('does again what is recomputed, which is not counted as useful', () => {
    const of = (recompute: 'none' | 'block' | 'attention-kept') =>
      stepWork({ ...setting, recompute }, { cast: 0, updated: 0 });
    const [none, block, kept] = [of('none'), of('block'), of('attention-kept')];
    expect(block.backward.flops - none.backward.flops).toBe(layerFlops);
    expect([block.backward.attended, kept.backward.attended]).toEqual([attended, 0]);
    expect(block.modelFlops).toBe(none.modelFlops);
  });

  it('moves what is recomputed again, and scores of plain attention that are', () => {
    const of = (changes: Partial<typeof setting>) =>
      stepWork({ ...setting, ...changes }, { cast: 0, updated: 0 });
    const ofLayer = 2 * tokens * layers * (12 * d + 3 * ff);
    for (const recompute of ['block', 'attention-kept'] as const)
      expect(of({ recompute }).backward.bytes - of({}).backward.bytes).toBe(ofLayer);
    const scores = 2 * tokens * layers * 4 * context;
    const plain = of({ attention: 'plain' });
    expect(plain.forward.bytes - of({}).forward.bytes).toBe(4 * scores);
    expect(plain.backward.bytes - of({}).backward.bytes).toBe(6 * scores);
    const again = (recompute: 'block' | 'attention-kept') =>
      of({ attention: 'plain', recompute }).backward.flops - plain.backward.flops;
    expect([again('block'), again('attention-kept')]).toEqual([layerFlops + 2 * attended, layerFlops]);
  });

  it('has two products of GELU, no turned queries of learned positions, and norms of queries and keys', () => {
    const bytesOf = (changes: Partial<typeof setting.shape>) => {
      const work = stepWork({ ...setting, shape: { ...setting.shape, ...changes } }, { cast: 0, updated: 0 });
      return [work.forward, work.backward].map(({ bytes }) => bytes / (2 * tokens));
    };
    const ofLogits = [2 * vocabulary, 4 * vocabulary];
    const expected = (forward: number, backward: number) =>
      [forward, backward].map((ofLayer, i) => layers * ofLayer + ofLogits[i]!);
    expect(bytesOf({ feedForward: 'gelu' })).toEqual(expected(12 * d + 2 * ff, 14 * d + 3 * ff));
    expect(bytesOf({ positions: 'learned' })).toEqual(expected(8 * d + 3 * ff, 10 * d + 5 * ff));
    expect(bytesOf({ queryKeyNorm: true })).toEqual(expected(16 * d + 3 * ff, 18 * d + 5 * ff));
  });

  it('casts nothing in float32, and updates what a rank updates', () => {
    const of = (dtype: 'float32' | 'bfloat16') => stepWork({ ...setting, dtype }, { cast: 100, updated: 10 });
    expect(of('bfloat16').forward.bytes - of('float32').forward.bytes / 2).toBe(6 * 100);
    expect(of('float32').optimizer.bytes).toBe(28 * 10);
  });

  it('is as much of flash attention where sequences are divided, and fewer scores of plain attention', () => {
    const of = (attention: 'flash' | 'plain', contextRanks: number) =>
      stepWork({ ...setting, attention }, { cast: 0, updated: 0, contextRanks });
    expect(of('flash', 4)).toEqual(of('flash', 1));
    // Of four ranks' keys a rank's own with all of its queries, and half of the pairs with each of the others.
    const share = (1 + 3 / 2) / 4;
    const [whole, divided] = [of('plain', 1), of('plain', 4)];
    expect(whole.forward.flops - divided.forward.flops).toBe((1 - share) * 2 * attended);
    expect(whole.attention.backward.flops - divided.attention.backward.flops).toBe(
      (1 - share) * 4 * attended,
    );
    const scores = 2 * tokens * layers * 4 * 4 * context;
    expect(whole.forward.bytes - divided.forward.bytes).toBe((1 - share) * scores);
  });

  it('has the keys of heads that ranks share once for each rank', () => {
    const grouped = { ...setting, shape: { ...setting.shape, keyValueHeads: 1 } };
    const of = (tensor: number) => stepWork(withCopies(grouped, tensor), { cast: 0, updated: 0 });
    const ofKeys = 2 * (d / 4) * d;
    expect(of(4).forward.flops - of(1).forward.flops).toBe(2 * tokens * layers * 3 * ofKeys);
    expect(of(4)).toEqual(stepWork(setting, { cast: 0, updated: 0 }));
    expect(withCopies(setting, 4)).toBe(setting);
  });
});

it('communication slows computation by the median of what overlap was measured to add, and by no more than it takes', () => {
  const step = (exposedMs: number, changes: Partial<typeof measuredStep> = {}) => ({
    ...{ ...measuredStep, ranks: 2, reduction: 'overlap' as const, communicationMs: 4, exposedMs },
    ...changes,
  });
  expect(interferenceOf([step(1), step(3), step(40)])).toBe(0.75);
  expect(interferenceOf([step(40)])).toBe(1);
  expect(interferenceOf([step(1), step(4, { reduction: 'flat' }), step(4, { ranks: 1 })])).toBe(0.25);
  expect(interferenceOf([step(4, { reduction: 'flat' })])).toBe(0);
});

describe('calibration', () => {
  const floor = (step = measuredStep) => {
    const { forward, backward, optimizer } = wholeStepWork({ ...step, recompute: 'none' });
    return [forward, backward, optimizer].reduce(
      (sum, { flops, attended, attendedBackward, bytes }) =>
        sum + 1000 * ((flops + attended + attendedBackward) / 1e12 + bytes / 1e11),
      0,
    );
  };
  const larger = { ...measuredStep, size: 'larger', context: 64 };
  /** Steps that take 0.5 ms a layer and 1.25 of the floor. */
  const steps = [measuredStep, larger].map((step) => ({
    ...step,
    computationMs: 0.5 * layers + 1.25 * floor(step),
  }));

  it('finds what a layer takes and the time over the floor', () => {
    const calibration = calibrate(toyMachine, setting, steps);
    expect(calibration.perLayerMs).toBeCloseTo(0.5, 6);
    expect(calibration.overFloor).toBeCloseTo(1.25, 6);
    const times = computationTimes(toyMachine, setting, wholeStepWork(setting), calibration);
    const total = times.forwardMs + times.backwardMs + times.optimizerMs;
    expect(total).toBeCloseTo(steps[0]!.computationMs, 6);
  });

  it('is of one layer, however many steps have: two thirds of what that takes are the backward pass', () => {
    const shallow = { ...measuredStep, size: 'shallow', shape: { ...setting.shape, layers: 1 } };
    const deep = { ...shallow, size: 'deep', context: 64, shape: { ...setting.shape, layers: 8 } };
    const mixed = [shallow, deep].map((step) => ({
      ...step,
      computationMs: 0.5 * step.shape.layers + 1.25 * floor(step),
    }));
    const calibration = calibrate(toyMachine, setting, mixed);
    expect(calibration.perLayerMs).toBeCloseTo(0.5, 6);
    const timesOf = (perLayerMs: number) =>
      computationTimes(toyMachine, setting, wholeStepWork(setting), { ...calibration, perLayerMs });
    const [none, some] = [timesOf(0), timesOf(3)];
    expect(some.forwardMs - none.forwardMs).toBeCloseTo(1 * layers, 9);
    expect(some.backwardMs - none.backwardMs).toBeCloseTo(2 * layers, 9);
  });

  it('leaves out steps whose ranks share a processor, and those without a time of their own', () => {
    const shared = { ...larger, sharing: 2, computationMs: 1e6 };
    const unknown = { ...larger, computationMs: null };
    expect(calibrate(toyMachine, setting, [measuredStep, shared, unknown])).toEqual(
      calibrate(toyMachine, setting, [measuredStep]),
    );
    expect(calibrate(toyMachine, { ...setting, sharing: 2 }, [measuredStep, shared]).overFloor).toBeCloseTo(
      1e6 / floor(larger),
      6,
    );
  });

  it('takes one size alone for its share of the floor', () => {
    expect(calibrate(toyMachine, setting, [measuredStep])).toEqual({
      ...{ perLayerMs: 0, overFloor: 10 / floor(), steps: 1 },
    });
  });

  it('has attention under a ceiling of its own', () => {
    const attention = [{ headDimension: 4, dtype: 'bfloat16', forward: 1e9, backward: 5e8 } as const];
    const work = wholeStepWork(setting);
    const plain = computationTimes(toyMachine, setting, work, { perLayerMs: 0, overFloor: 1, steps: 1 });
    const slow = computationTimes({ ...toyMachine, attention }, setting, work, {
      perLayerMs: 0,
      overFloor: 1,
      steps: 1,
    });
    expect(slow.forwardMs - plain.forwardMs).toBeCloseTo(1000 * (attended / 1e9 - attended / 1e12), 8);
    expect(slow.backwardMs - plain.backwardMs).toBeCloseTo(2500 * (attended / 5e8 - attended / 1e12), 8);
  });

  it('has the ceiling of the nearest head dimension, as ratios go, in its dtype', () => {
    const ceiling = (headDimension: number, forward: number, dtype: 'bfloat16' | 'float32' = 'bfloat16') => ({
      ...{ headDimension, dtype, forward, backward: forward },
    });
    const forwardMs = (attention: readonly ReturnType<typeof ceiling>[], asked = setting) =>
      computationTimes({ ...toyMachine, attention: [...attention] }, asked, wholeStepWork(asked), {
        ...{ perLayerMs: 0, overFloor: 1, steps: 1 },
      }).forwardMs;
    // A head has 4: 7 is less than twice that.
    const near = ceiling(7, 1e9);
    const others = [ceiling(2, 2e9), ceiling(4, 3e9, 'float32')];
    expect(forwardMs([...others, near])).toBe(forwardMs([near]));
    expect(forwardMs([near, ...others])).toBe(forwardMs([near]));
    const long = { ...setting, shape: { ...setting.shape, headDimension: 8 } };
    expect(forwardMs([ceiling(4, 2e9), near], long)).toBe(forwardMs([near], long));
  });

  it('names the kinds of steps that there are', () => {
    expect(() => calibrate(toyMachine, { ...setting, execution: 'eager' })).toThrow(UsageError);
    expect(() => calibrate(toyMachine, { ...setting, execution: 'eager' })).toThrow(
      'eager, with flash attention, in bfloat16; there are: compiled, flash, bfloat16.',
    );
  });
});
