import { expect, it } from 'vitest';
import type { CompileRequest } from '../../src/devices/cuda/compile/nvrtc.ts';
import * as t from '../../src/index.ts';
import type { CudaDevice } from '../../src/native.ts';
import { openNoOpDevice } from '../lifetimes/no-op-kernels.ts';

/** A step whose compiled program has kernels that its calls one by one have not: of one call two, which follow one another. */
function compiledStep(device: CudaDevice) {
  const x = t.randn([64, 32], { device, seed: 1 });
  const weight = t.randn([32, 32], { device, seed: 2, requiresGrad: true });
  const step = t.compile(() => {
    weight.grad = null;
    const hidden = t.rmsNorm(t.silu(t.mul(t.matmul(x, weight), 2)), t.ones([32], { device }));
    const loss = t.add(t.mean(t.exp(hidden)), t.sum(t.softmax(hidden, -1)));
    loss.backward();
    return loss.detach();
  });
  while (step.cache.hits === 0) step().dispose();
  return step.explain().at(-1)!;
}

it('a program whose kernels are compiled aside is the one of kernels compiled one by one', () => {
  const batches: (readonly CompileRequest[])[] = [];
  const beginBatch = (requests: readonly CompileRequest[]) => {
    batches.push(requests);
    return { take: () => null };
  };
  const aside = compiledStep(openNoOpDevice(beginBatch));
  expect(aside).toEqual(compiledStep(openNoOpDevice()));
  expect(aside.nodes).toBeGreaterThan(3);
  expect(batches.flat().length).toBeGreaterThan(batches.length);
});
