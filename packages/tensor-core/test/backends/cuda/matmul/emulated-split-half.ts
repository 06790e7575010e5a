import { readFileSync } from 'node:fs';
import { ffi } from '@roofline/cuda/host';
import { kernelSource } from '../../../../src/op/kernel-arguments/kernel-source.ts';
import type { CudaContext } from '../../../../src/op/cuda-lowering.ts';
import type { CudaDriver } from '@roofline/cuda/parts';
import type { CudaKernel, KernelSpec } from '@roofline/cuda';
import type { CudaDevice } from '../../../../src/backends/cuda/device.ts';
import { SplitHalfProduct } from '../../../../src/backends/cuda/matmul/matmul-split-half.ts';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

export interface SplitHalfDevice {
  readonly device: CudaDevice;
  /** The names that the product's host side launches by. */
  readonly context: CudaContext;
  readonly product: SplitHalfProduct;
}

/**
 * An emulated GPU whose float32 products are those of `SplitHalfProduct`: its own host side, its own split kernel, and
 * emulated-split-half.cu in place of the tensor cores. It does not support both operands transposed.
 */
export function openSplitHalfDevice(): SplitHalfDevice {
  let parts: Omit<SplitHalfDevice, 'device'> | undefined;
  const device = openEmulatedDevice(undefined, undefined, (whole, _, scratch) => {
    const context = withoutTensorCores(whole);
    const product = new SplitHalfProduct(context, tensorMapDriver(), scratch);
    parts = { context, product };
    return { tryRun: (request) => product.tryRun(request, true) };
  });
  return { device, ...parts! };
}

function withoutTensorCores(context: CudaContext): CudaContext {
  const source = new URL('emulated-split-half.cu', import.meta.url);
  const headers = { 'split_half.cuh': readFileSync(kernelSource('split_half.cuh'), 'utf8') };
  const specs = new Map<KernelSpec, KernelSpec>();
  const kernel = (spec: KernelSpec): CudaKernel => {
    if (spec.name !== 'matmul_split_half') return context.kernel(spec);
    const { name, parameters, defines } = spec;
    if (!specs.has(spec)) specs.set(spec, { source, headers, name, parameters, defines: { ...defines } });
    const emulated = context.kernel(specs.get(spec)!);
    // It needs no shared memory.
    const resources = () => emulated.resources();
    return {
      name,
      resources,
      launch: (grid, blockSize, _, values) => emulated.launch(grid, blockSize, 0, values),
    };
  };
  return {
    properties: context.properties,
    multiprocessors: context.multiprocessors,
    isCaptured: context.isCaptured,
    kernel,
    workspace: (byteLength) => context.workspace(byteLength),
    fillBytes: (address, value, byteLength) => context.fillBytes(address, value, byteLength),
    matmul: (request) => context.matmul(request),
    copy: (from, to) => context.copy(from, to),
  };
}

/** A driver that knows tensor maps alone, and writes of each {address, 4 dimensions, 3 strides in bytes}. */
function tensorMapDriver(): CudaDriver {
  const words = (address: number, count: number) => new BigUint64Array(ffi().view(address, 8 * count));
  const cuTensorMapEncodeTiled = (...[map, , , address, dimensions, strides]: number[]): number => {
    words(map!, 8).set([BigInt(address!), ...words(dimensions!, 4), ...words(strides!, 3)]);
    return 0;
  };
  return { functions: { cuTensorMapEncodeTiled }, check: () => {} } as unknown as CudaDriver;
}
