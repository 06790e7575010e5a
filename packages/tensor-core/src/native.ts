// For projects whose `lib` has no Symbol.dispose, which tensors do have.
/// <reference lib="esnext.disposable" preserve="true" />

// What a package needs to bring kernels and libraries of its own; the README's section "Kernels and libraries of your
// own" documents it.

// Kernel sources, variants and launches.
export { packageKernels } from './base/host/package-kernels.ts';
export { computeType, storageType } from './op/kernel-arguments/c-types.ts';
export {
  type CompilableKernel,
  type CompileKernelsOptions,
  compileKernels,
} from './cuda/nvrtc/compile-kernels.ts';
export { denseCopy } from './ops/support/dense-memory.ts';
export { type KernelVariants, kernelVariants } from './op/kernel-arguments/kernel-variants.ts';
export {
  type RegisterBudget,
  type RowPlan,
  launchRows,
  rowPlan,
  vectorLength,
} from './ops/support/row-kernel.ts';
export { type TensorMapDescription, tensorMapBytes } from './cuda/launch/tensor-map.ts';

// Memory and shapes.
export { sameShape } from './base/shape.ts';
export { type StoredElements, shareMemory } from './tensor/storage/overlap.ts';
export { valueBeyond } from './ops/copy/value-beyond.ts';

// For what holds while a function runs, or is compiled.
export { currentTrace } from './tensor/tracing.ts';
export { refuseAsync, refusePromise } from './base/synchronous.ts';

// The GPU behind a device or a lowering's context: streams, events, pools, pinned memory, tensor maps.
export { cudaDevice } from './backends/cuda/cuda-device.ts';
export type { CudaDevice } from './backends/cuda/device.ts';
export type { CudaStream, StreamPriority } from './cuda/driver/stream.ts';
export type { CudaEvent, EventOptions } from './cuda/driver/event.ts';
export type { MemoryPool, SegmentSize } from './cuda/memory/memory-pool.ts';
export type { PinnedMemory } from './cuda/memory/pinned-memory.ts';

export { type ClockLimit, type ClockReading, type GpuClocks, gpuClocks } from './cuda/driver/nvml.ts';

// Libraries and host memory.
export {
  type LibraryDescription,
  type LoadedLibrary,
  libraries,
  loadLibrary,
} from './cuda/driver/library-search.ts';
export {
  type NativeArgument,
  type NativeFunction,
  type NativeFunctions,
  type Prototypes,
  declareFunctions,
  ffi,
} from './base/host/ffi.ts';
export { HostMemory, addressOf } from './base/host/host-memory.ts';
export { keepLibrary } from './base/host/keep-library.ts';
