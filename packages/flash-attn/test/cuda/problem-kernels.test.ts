import type { CudaContext, DType, KernelSpec, MemoryView, Tensor } from '@roofline/tensor-core';
import type { CompilableKernel } from '@roofline/cuda';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { compileBackwardAhead } from '../../src/cuda/compile-ahead.ts';
import type { FlashKernels } from '../../src/cuda/flash-kernels.ts';
import { launchBackward, launchForward } from '../../src/cuda/launch.ts';
import { flashAttentionKernels, setFlashKernels } from '../../src/index.ts';

// The tensor maps of Hopper's kernels are no matter here: their place is not read.
const compileAhead = vi.hoisted(() => vi.fn<(kernels: readonly CompilableKernel[]) => void>());

vi.mock(import('@roofline/tensor-core/kernel-api'), async (original) => ({
  ...(await original()),
  cudaDevice: (of) => ({ ...of, encodeTensorMap() {}, scratch: () => 2 ** 20, compileAhead }) as never,
}));

const gpus = [
  { computeCapability: 80, multiprocessors: 108, maxSharedBytesPerBlock: 163 * 1024 },
  { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
  { computeCapability: 120, multiprocessors: 170, maxSharedBytesPerBlock: 99 * 1024 },
];

function viewOf(shape: readonly number[], dtype: DType): MemoryView {
  const size = shape.reduce((a, b) => a * b, 1);
  const strides = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
  return { address: 2 ** 30, dtype, shape, strides, size, byteLength: 4 * size, isContiguous: true } as never;
}

const textOf = ({ source, defines }: Pick<KernelSpec, 'source' | 'defines'>) =>
  JSON.stringify([source.href, defines]);

/** What the lowerings of both passes launch, each file with its macros once. */
function launchedBy(shape: readonly number[], dtype: DType, gpu: object, deterministic: boolean): string[] {
  const launched = new Set<string>();
  const context = {
    properties: gpu,
    workspace: () => 2 ** 21,
    kernel: (spec: KernelSpec) => ({ launch: () => void launched.add(textOf(spec)) }),
  } as unknown as CudaContext;
  const [x, rows] = [viewOf(shape, dtype), viewOf(shape.slice(0, 3), 'float32')];
  const settings = { causal: true, scale: 0.125, deterministic };
  launchForward(context, [x, x, x], [x, rows, rows], { ...settings, layout: 'bhnd' });
  const layouts = ['bhnd', 'bhnd', 'bhnd'] as const;
  launchBackward(context, [x, x, x, x, rows, rows, x], [x, x, x], { ...settings, layouts });
  return [...launched].sort();
}

describe.each(gpus)('flashAttentionKernels on compute capability $computeCapability', (gpu) => {
  afterEach(() => setFlashKernels('auto'));

  it.each(['auto', 'mma', 'simt'] satisfies FlashKernels[])('names what is launched of %s', (family) => {
    setFlashKernels(family);
    for (const dtype of ['bfloat16', 'float32'] as const)
      for (const headDimension of [16, 40, 64, 128, 200])
        for (const length of [1, 128, 1024, 8192, 65536])
          for (const deterministic of [false, true]) {
            const shape = [1, 2, length, headDimension];
            const options = { causal: true, scale: 0.125, deterministic };
            const named = flashAttentionKernels({ q: shape, k: shape, dtype }, gpu, options);
            expect(named.map(textOf).sort()).toEqual(launchedBy(shape, dtype, gpu, deterministic));
          }
  });

  it('are compiled ahead for the backward pass', () => {
    const [x, rows] = [viewOf([1, 2, 128, 64], 'bfloat16'), viewOf([1, 2, 128], 'float32')];
    const launched = new Set<string>();
    const kernel = (spec: KernelSpec) => ({ launch: () => void launched.add(textOf(spec)) });
    const context = { properties: gpu, workspace: () => 2 ** 21, kernel } as unknown as CudaContext;
    const settings = { causal: true, scale: 0.125, deterministic: false };
    const layouts = ['bhnd', 'bhnd', 'bhnd'] as const;
    launchBackward(context, [x, x, x, x, rows, rows, x], [x, x, x], { ...settings, layouts });
    compileAhead.mockClear();
    const sizes = { batch: 1, heads: 2, keyHeads: 2, queries: 128, keys: 128, headDimension: 64 };
    const q = { ...x, device: { type: 'cuda', facts: gpu } } as unknown as Tensor;
    compileBackwardAhead(q, sizes, settings);
    const begun = new Set(compileAhead.mock.calls.flatMap(([kernels]) => kernels.map(textOf)));
    expect([...begun].sort()).toEqual([...launched].sort());
  });

  it('throws for operands that are not tensors', () => {
    const attempt = (q: number[], k: number[]) => () =>
      flashAttentionKernels({ q, k, dtype: 'float32' }, gpu);
    expect(attempt([1, 2, 3], [1, 2, 3])).toThrow(/^flashAttentionKernels: q \[1, 2, 3\]/);
    expect(attempt([1, 1, 8, 512], [1, 1, 8, 512])).toThrow(/from 1 to 256, not 512/);
  });
});
