import { AdamW } from '@roofline/optim';
import {
  type Device,
  Generator,
  type Tensor,
  addInPlace,
  autocast,
  compile,
  mul,
  noGrad,
  randint,
  scope,
  slice,
} from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { TransformerLM, languageModelLoss } from '../src/index.ts';

const config = {
  vocabularySize: 32,
  contextLength: 8,
  modelDimension: 16,
  feedForwardDimension: 24,
  layers: 2,
  heads: 2,
};
const learningRate = 0.5;
const steps = 4;

/** Gradient descent, all of it in one function. */
class Training {
  readonly model: TransformerLM;
  readonly #isLow: boolean;

  constructor(on: Device | 'cpu', dtype: 'float32' | 'bfloat16') {
    this.model = new TransformerLM(config, { device: on, seed: 2 });
    this.#isLow = dtype === 'bfloat16';
  }

  step(ids: Tensor, targets: Tensor): Tensor {
    return scope(() => {
      const forward = () => languageModelLoss(this.model, ids, targets);
      const loss = this.#isLow ? autocast('bfloat16', forward) : forward();
      loss.backward();
      for (const parameter of this.model.parameters()) {
        noGrad(() => addInPlace(parameter, mul(parameter.grad!, -learningRate)));
        parameter.grad!.dispose();
        parameter.grad = null;
      }
      return loss.detach();
    });
  }

  /** The elements of each parameter. */
  values(): number[][] {
    return [...this.model.parameters()].map((x) => x.toFlatArray() as number[]);
  }
}

function distance(a: readonly number[], b: readonly number[]): number {
  return Math.hypot(...a.map((value, i) => value - b[i]!));
}

describe.skipIf(hostCompilerVersion() === null)('compiled on an emulated GPU in bfloat16', () => {
  const gpu = openEmulatedDevice();

  it('training is as near to float32 as eager code is', () => {
    const exact = new Training('cpu', 'float32');
    const [eager, training] = [new Training(gpu, 'bfloat16'), new Training(gpu, 'bfloat16')];
    const step = compile((ids: Tensor, targets: Tensor) => training.step(ids, targets));
    const generator = new Generator(5);
    const begin = exact.values();
    for (let i = 0; i < steps; i++) {
      const tokens = randint(0, config.vocabularySize, [2, 9], { generator, dtype: 'int64' });
      const batch = [slice(tokens, 1, 0, 8), slice(tokens, 1, 1, 9)] as [Tensor, Tensor];
      exact.step(...batch);
      const there = batch.map((x) => x.to(gpu)) as [Tensor, Tensor];
      eager.step(...there);
      step(...there);
    }
    expect(step.cache).toMatchObject({ hits: steps - 1, misses: 1 });
    // Of each layer: k with q, and w3 with w1; those and v in the gradients of their input and in their own.
    expect(step.explain()[0]).toMatchObject({ mergedProducts: 2 * 8, accumulatedProducts: 2 * 2 });
    const [reference, ours, theirs] = [exact, training, eager].map((each) => each.values());
    const errors = (values: number[][]) => values.map((value, i) => distance(value, reference![i]!));
    const [own, eagers] = [errors(ours!), errors(theirs!)];
    const names = [...exact.model.namedParameters()].map(([name]) => name);
    expect(names.filter((_, i) => own[i]! >= 2 * eagers[i]!)).toEqual([]);
    // Each has been trained by far more than it is off.
    expect(names.filter((_, i) => own[i]! > 0.5 * distance(begin[i]!, reference![i]!))).toEqual([]);
  });

  it('AdamW writes the joint weights of merged products', () => {
    const run = (on: Device | 'cpu', dtype: 'float32' | 'bfloat16', isCompiled: boolean) => {
      const { model } = new Training(on, dtype);
      const optimizer = new AdamW(model.parameters(), { learningRate: 0.01 });
      const step = (ids: Tensor, targets: Tensor) =>
        scope(() => {
          const forward = () => languageModelLoss(model, ids, targets);
          (dtype === 'float32' ? forward() : autocast(dtype, forward)).backward();
          optimizer.step();
          optimizer.zeroGrad();
        });
      const compiled = compile(step);
      const generator = new Generator(6);
      for (let i = 0; i < steps; i++) {
        const tokens = randint(0, config.vocabularySize, [2, 9], { generator, dtype: 'int64' }).to(on);
        (isCompiled ? compiled : step)(slice(tokens, 1, 0, 8), slice(tokens, 1, 1, 9));
      }
      const values = [...model.parameters()].flatMap((x) => x.toFlatArray() as number[]);
      return { values, explanation: compiled.explain()[0] };
    };
    const exact = run('cpu', 'float32', false).values;
    const [eager, ours] = [run(gpu, 'bfloat16', false), run(gpu, 'bfloat16', true)];
    // Of each layer seven, and the last one's.
    expect(ours.explanation).toMatchObject({ mergedProducts: 2 * 8, carriedCasts: 2 * 7 + 1 });
    expect(distance(ours.values, exact)).toBeLessThan(2 * distance(eager.values, exact));
  });
});
