import {
  type Device,
  type Tensor,
  addInPlace,
  autocast,
  compile,
  fromTypedArray,
  mul,
  noGrad,
  scope,
} from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { TransformerLM, languageModelLoss } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { flashAttention } from '../src/index.ts';
import { relativeError } from './attempt.ts';

const config = {
  vocabularySize: 17,
  contextLength: 12,
  modelDimension: 32,
  feedForwardDimension: 48,
  layers: 2,
  heads: 2,
};
const steps = 3;

/** The parameters after some steps of gradient descent, and how many products are parts of others. */
function train(where: Device | 'cpu', dtype: 'float32' | 'bfloat16', isCompiled: boolean) {
  const model = new TransformerLM(config, { device: where, attention: flashAttention, seed: 4 });
  const step = (ids: Tensor, targets: Tensor) =>
    scope(() => {
      const forward = () => languageModelLoss(model, ids, targets);
      const loss = dtype === 'bfloat16' ? autocast(dtype, forward) : forward();
      loss.backward();
      for (const parameter of model.parameters()) {
        noGrad(() => addInPlace(parameter, mul(parameter.grad!, -0.5)));
        parameter.grad!.dispose();
        parameter.grad = null;
      }
      return loss.detach();
    });
  const compiled = compile(step);
  const run = isCompiled ? compiled : step;
  for (let i = 0; i < steps; i++) {
    const tokens = BigInt64Array.from({ length: 25 }, (_, j) => BigInt((7 * j * j + 3 * i) % 17));
    const batch = (of: BigInt64Array) => fromTypedArray(of, [2, 12]).to(where);
    run(batch(tokens.subarray(0, 24)), batch(tokens.subarray(1)));
  }
  const mergedProducts = isCompiled ? compiled.explain()[0]!.mergedProducts : 0;
  return { mergedProducts, values: [...model.parameters()].flatMap((x) => x.toFlatArray() as number[]) };
}

describe.skipIf(hostCompilerVersion() === null)('a model with flashAttention, compiled in bfloat16', () => {
  it('is as near to float32 as eager code is, with products merged', () => {
    const gpu = openEmulatedDevice();
    const exact = train('cpu', 'float32', false).values;
    const [eager, compiled] = [train(gpu, 'bfloat16', false), train(gpu, 'bfloat16', true)];
    // Of each layer: k with q, and w3 with w1; those and v in the gradients of their input and in their own.
    expect(compiled.mergedProducts).toBe(2 * 8);
    const [theirs, ours] = [eager, compiled].map(({ values }) => relativeError(values, exact));
    expect(theirs).toBeGreaterThan(0);
    expect(ours).toBeLessThan(2 * theirs!);
  });
});
