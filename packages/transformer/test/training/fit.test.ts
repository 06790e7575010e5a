import { AdamW, GradientScaler, clipGradientNorm, cosineSchedule } from '@roofline/optim';
import { type Tensor, add, autocast, fromTypedArray, scope, slice } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  type FitOptions,
  TokenLoader,
  TransformerLM,
  byteTokens,
  fit,
  languageModelLoss,
} from '../../src/index.ts';

const text = byteTokens('A loop over steps is all that training is. '.repeat(3));
const config = {
  ...{ vocabularySize: 128, contextLength: 8, modelDimension: 16 },
  ...{ feedForwardDimension: 24, layers: 1, heads: 2 },
};
const schedule = cosineSchedule({ maximum: 0.01, warmupSteps: 2, totalSteps: 6 });
const clip = (parameters: Iterable<Tensor>) => clipGradientNorm(parameters, 0.5);

function parts() {
  const model = new TransformerLM(config, { seed: 1 });
  const optimizer = new AdamW(model.parameters());
  return { model, optimizer, data: new TokenLoader(text, { batch: 4, contextLength: 8 }) };
}

type Parts = ReturnType<typeof parts>;

/** What steps say, and the parameters that they leave. */
function fitted({ model, ...rest }: Parts, options: Partial<FitOptions> = {}) {
  const steps = [];
  for (const { step, loss, gradientNorm, learningRate } of fit(model, {
    ...rest,
    schedule,
    steps: 6,
    ...options,
  }))
    steps.push({ step, loss, gradientNorm, learningRate });
  return { steps, parameters: valuesOf(model) };
}

const valuesOf = (model: TransformerLM) => [...model.parameters()].map((each) => each.toFlatArray());

/** The same, by the parts that `fit` is made of. */
function byHand({ model, optimizer, data }: Parts, accumulate = 1, dtype?: 'bfloat16') {
  const steps = Array.from({ length: 6 }, (_, step) =>
    scope(() => {
      optimizer.learningRate = schedule(step);
      const { ids, targets } = data.next();
      const rows = 4 / accumulate;
      let total = 0;
      for (let part = 0; part < accumulate; part++) {
        const [a, b] = [ids, targets].map((x) => slice(x, 0, part * rows, (part + 1) * rows)) as [
          Tensor,
          Tensor,
        ];
        const forward = () => languageModelLoss(model, a, b);
        const loss = dtype ? autocast(dtype, forward) : forward();
        loss.div(accumulate).backward();
        total = Math.fround(total + Math.fround(loss.item() / accumulate));
      }
      const gradientNorm = clip(optimizer.parameters()).item();
      optimizer.step();
      optimizer.zeroGrad();
      return { step, loss: total, gradientNorm, learningRate: schedule(step) };
    }),
  );
  return { steps, parameters: valuesOf(model) };
}

describe('fit', () => {
  it.each<[what: string, options: Partial<FitOptions>]>([
    ['eager', {}],
    ['compiled', { compile: true }],
    ['compiled, of four parts', { compile: {}, accumulate: 4 }],
    ['of two parts', { accumulate: 2 }],
    ['in bfloat16', { dtype: 'bfloat16' }],
  ])('makes the steps that its parts make, %s', (_, options) => {
    const expected = byHand(parts(), options.accumulate, options.dtype as 'bfloat16');
    expect(fitted(parts(), { clip, ...options })).toEqual(expected);
  });

  it('goes on from a step, and without a schedule leaves the learning rate alone', () => {
    const { model, optimizer, data } = parts();
    const steps = [...fit(model, { data, optimizer, from: 3, steps: 5 })];
    expect(steps.map(({ step, learningRate }) => [step, learningRate])).toEqual([
      [3, 1e-3],
      [4, 1e-3],
    ]);
    expect(steps.map(({ gradientNorm }) => gradientNorm)).toEqual([null, null]);
    expect(data.state().windows).toBe(8);
    // A training that is over, and taken up again, makes no step.
    expect([...fit(model, { data, optimizer, from: 5, steps: 5 })]).toEqual([]);
    expect(data.state().windows).toBe(8);
  });

  it('gives values of the last steps once it is over, and of none that is older', () => {
    const { model, ...rest } = parts();
    const steps = [...fit(model, { ...rest, steps: 4 })];
    expect(steps.slice(2).map(({ loss }) => Number.isFinite(loss))).toEqual([true, true]);
    for (const old of steps.slice(0, 2)) expect(() => old.loss).toThrow(/disposed/);
  });

  it('can be left in the middle, and taken up again', () => {
    const whole = fitted(parts(), { compile: true });
    const { model, ...rest } = parts();
    for (const { step } of fit(model, { ...rest, schedule, compile: true, steps: 6 })) if (step === 2) break;
    const { steps, parameters } = fitted({ model, ...rest }, { from: 3 });
    expect(steps).toEqual(whole.steps.slice(3));
    expect(parameters).toEqual(whole.parameters);
  });

  it.each([false, true])('leaves nothing behind that grows with the steps (compiled: %s)', (isCompiled) => {
    const { model, ...rest } = parts();
    const held: number[] = [];
    const { device } = model.lmHead.weight;
    for (const { step } of fit(model, { ...rest, clip, compile: isCompiled, steps: 30 }))
      if (step >= 5) held.push(device.allocatedBytes);
    expect(new Set(held).size).toBe(1);
    expect(held[0]).toBeGreaterThan(0);
  });

  it('skips updates of float16 gradients that overflow', () => {
    const { model, ...rest } = parts();
    const before = valuesOf(model);
    const scaler = new GradientScaler({ initialScale: 2 ** 120 });
    const loss = (ids: Tensor, targets: Tensor) => languageModelLoss(model, ids, targets).mul(2 ** 30);
    for (const _ of fit(model, { ...rest, scaler, loss, dtype: 'float16', clip, steps: 1 }));
    expect(valuesOf(model)).toEqual(before);
    expect(scaler.stateDict().scale).toBe(2 ** 119);
  });

  it('takes data and losses of your own', () => {
    const { model, optimizer } = parts();
    const one = () => fromTypedArray(Int32Array.of(1, 2, 3), [1, 3]);
    const asked: string[] = [];
    const data = {
      next: () => ({ ids: one(), targets: one() }),
      prefetch: () => void asked.push('prefetch'),
    };
    const loss = (ids: Tensor, targets: Tensor) => add(languageModelLoss(model, ids, targets), 100);
    const steps = [...fit(model, { data, optimizer, loss, steps: 2 })];
    expect(steps[1]!.loss).toBeGreaterThan(100);
    expect(asked).toEqual(['prefetch', 'prefetch']);
  });

  it('names what it cannot do, before the first step', () => {
    const { model, ...rest } = parts();
    const attempt = (options: object) => () => fit(model, { ...rest, steps: 1, ...options });
    expect(attempt({ from: 2 })).toThrow('fit: steps 1 are where training ends, and from is 2.');
    expect(attempt({ dtype: 'float8' })).toThrow(/dtype must be one of float32, bfloat16, float16/);
    expect(attempt({ acumulate: 2 })).toThrow(/did you mean "accumulate"/);
    expect(() => fit(model, { ...rest, steps: 1, accumulate: 3 }).next()).toThrow(
      'fit: a batch of 4 rows cannot be divided into 3 parts; accumulate must divide it.',
    );
  });
});
