// Compiles the kernels of everything that `roofline flash` measures by default, as it does before its first cell, then calls
// flashAttention, forward and backward, once for each. Prints how many kernels were compiled, how many milliseconds that
// took, and how many the first calls took beyond the second ones: loading kernels from the cache.
import { type DType, device, randn, scope, zeros } from '@roofline/tensor-core';
import { compileKernels } from '@roofline/cuda';
import { cudaDevice } from '@roofline/tensor-core/kernel-api';
import { flashAttention, flashAttentionKernels } from '../../src/index.ts';

const gpu = device('cuda');
const dimensions = [16, 32, 64, 128];
const sequences = Array.from({ length: 10 }, (_, i) => 128 * 2 ** i);
const dtypes: readonly DType[] = ['bfloat16', 'float32'];

function callMs(headDimension: number, sequence: number, dtype: DType): number {
  const start = performance.now();
  scope(() => {
    const make = () => randn([1, 1, sequence, headDimension], { dtype, device: gpu });
    const [q, k, v] = [make().requiresGrad_(), make().requiresGrad_(), make().requiresGrad_()];
    flashAttention(q, k, v, { causal: true }).backward(make());
  });
  gpu.synchronize();
  return performance.now() - start;
}

// What all calls share is not theirs: memory from the driver, and the other kernels.
scope(() => void zeros([2 ** 29], { device: gpu }));
scope(() => dtypes.forEach((dtype) => void randn([8], { dtype, device: gpu })));
callMs(8, 16, 'float64');
const shapes = dtypes.flatMap((dtype) =>
  dimensions.flatMap((headDimension) =>
    sequences.map((sequence) => ({ shape: [1, 1, sequence, headDimension], dtype })),
  ),
);
const { facts } = cudaDevice(gpu);
const start = performance.now();
const kernels = await compileKernels(
  shapes.flatMap(({ shape, dtype }) =>
    flashAttentionKernels({ q: shape, k: shape, dtype }, facts, { causal: true }),
  ),
  facts.computeCapability,
);
const compileMs = performance.now() - start;
let extraMs = 0;
for (const dtype of dtypes)
  for (const headDimension of dimensions)
    for (const sequence of sequences) {
      const firstMs = callMs(headDimension, sequence, dtype);
      extraMs += Math.max(0, firstMs - callMs(headDimension, sequence, dtype));
    }
console.log(JSON.stringify({ kernels, compileMs, extraMs }));
