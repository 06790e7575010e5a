import * as t from '../../src/index.ts';
import type { CudaDevice } from '../../src/kernel-api.ts';

/**
 * The explanation of a step whose executable has kernels that its separate calls do not have: two consecutive ones for one
 * call.
 */
export function compiledStep(device: CudaDevice) {
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
