import { AdamW } from '@roofline/optim';
import {
  type CompiledFunction,
  Generator,
  type Tensor,
  autocast,
  compile,
  cudaAvailable,
  device,
  keep,
  randint,
  scope,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { TransformerLM, languageModelLoss, presets } from '../../src/index.ts';
import {
  type TrainingDType,
  expectSameBits,
  smallPresets,
  train,
  trainingDtypes,
} from '../small-training.ts';

const steps = 20;
const unitRoundoff: Record<TrainingDType, number> = {
  float32: 2 ** -24,
  float16: 2 ** -11,
  bfloat16: 2 ** -8,
};

/** ‖a - b‖ / ‖b‖ over all lists together. */
function relativeError(a: readonly ArrayLike<number>[], b: readonly ArrayLike<number>[]): number {
  let [error, norm] = [0, 0];
  b.forEach((exact, list) => {
    for (let i = 0; i < exact.length; i++) {
      error += (a[list]![i]! - exact[i]!) ** 2;
      norm += exact[i]! ** 2;
    }
  });
  return Math.sqrt(error / norm);
}

/** A whole step of a preset, on tokens that stay. */
function stepOf(name: keyof typeof presets, dtype: 'float32' | 'bfloat16'): () => Tensor {
  const config = presets[name];
  const model = new TransformerLM(config, { device: 'cuda', seed: 1 });
  const optimizer = new AdamW(model.parameters());
  const generator = new Generator(2);
  const tokens = () =>
    randint(0, config.vocabularySize, [4, 256], { generator, device: 'cuda', dtype: 'int64' });
  const [ids, targets] = [tokens(), tokens()];
  return () => {
    const forward = () => languageModelLoss(model, ids, targets);
    const loss = dtype === 'float32' ? forward() : autocast(dtype, forward);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
}

function compiledStep(name: keyof typeof presets, dtype: 'float32' | 'bfloat16') {
  const step: CompiledFunction<() => Tensor> = compile(stepOf(name, dtype));
  while (step.cache.hits === 0) step().dispose();
  return step;
}

/** The median of the host's time for a step, of the last `counted` of `steps`: V8 compiles what is hot, and training makes thousands. */
function hostTimeUs(step: () => Tensor, steps: number, counted: number): number {
  const samplesUs = Array.from({ length: steps }, () => {
    device('cuda').synchronize();
    const startMs = performance.now();
    const loss = scope(() => keep(step()));
    const us = (performance.now() - startMs) * 1000;
    loss.dispose();
    return us;
  });
  return samplesUs.slice(-counted).toSorted((a, b) => a - b)[counted >> 1]!;
}

describe.skipIf(!cudaAvailable())('compiled on a GPU', () => {
  describe.each(smallPresets)('%s made small', (name, config) => {
    it.each(trainingDtypes)('trains for 20 steps as eager code does, within the rounding of %s', (dtype) => {
      const [eager, compiled] = (['eager', 'compiled'] as const).map((execution) =>
        train(config, dtype, 'cuda', execution, steps),
      );
      expect(compiled!.replays).toBe(steps - 2);
      const numbers = (lists: readonly ArrayLike<number | bigint>[]) => lists as readonly ArrayLike<number>[];
      const errors = {
        losses: relativeError([compiled!.losses], [eager!.losses]),
        gradients: relativeError(numbers(compiled!.gradients), numbers(eager!.gradients)),
        parameters: relativeError(numbers(compiled!.parameters), numbers(eager!.parameters)),
      };
      console.log(`${name} ${dtype}: ${JSON.stringify(errors)}`);
      // Each step may round what the one before it left once more.
      for (const error of Object.values(errors))
        expect(error).toBeLessThanOrEqual(steps * unitRoundoff[dtype]);
    });
  });

  it.each(smallPresets)(
    '%s made small trains to the same bits with branches as in one chain',
    (_, config) => {
      for (const dtype of trainingDtypes) {
        const [branched, chain] = (['always', 'never'] as const).map((branches) =>
          train(config, dtype, 'cuda', 'compiled', steps, { branches }),
        );
        expect(branched!.replays).toBe(steps - 2);
        expectSameBits(branched!, chain!);
      }
    },
  );

  it('holds no more memory after 1,000 replays, of the device or of the host', () => {
    const step = compiledStep('tiny', 'bfloat16');
    const run = (count: number) => {
      for (let i = 0; i < count; i++) step().dispose();
      device('cuda').synchronize();
      globalThis.gc?.();
      const { allocatedBytes, reservedBytes, liveStorages } = device('cuda').memoryStatistics();
      const { rss, external, arrayBuffers } = process.memoryUsage();
      return { device: { allocatedBytes, reservedBytes, liveStorages }, rss, external, arrayBuffers };
    };
    // V8 compiles what is hot, and its heap grows to its size.
    run(1000);
    const before = run(1000);
    const after = run(1000);
    console.log(JSON.stringify({ before, after }));
    expect(after.device).toEqual(before.device);
    // A leak of 16 bytes a kernel and replay would be more.
    expect(after.rss - before.rss).toBeLessThan(2 ** 22);
    step.dispose();
  });

  it("takes the host less than a hundredth of the eager step's time a replay of the small model", () => {
    const eagerUs = hostTimeUs(stepOf('small', 'bfloat16'), 150, 50);
    const step = compiledStep('small', 'bfloat16');
    const replayUs = hostTimeUs(step, 1500, 500);
    console.log(`host time of a step: ${eagerUs.toFixed(0)} µs, of a replay: ${replayUs.toFixed(1)} µs`);
    expect(replayUs).toBeLessThan(eagerUs / 100);
    step.dispose();
  });
});
