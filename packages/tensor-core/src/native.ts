// For projects whose `lib` has no Symbol.dispose, which tensors do have.
/// <reference lib="esnext.disposable" preserve="true" />

// What a package needs to bring kernels and libraries of its own; the README's section "Kernels and libraries of your
// own" documents it.

// Kernel sources, variants and launches.
export { packageKernels } from './native/package-kernels.ts';
export { computeType, storageType } from './devices/cuda/compile/c-types.ts';
export {
  type CompilableKernel,
  type CompileKernelsOptions,
  compileKernels,
} from './devices/cuda/compile/compile-kernels.ts';
export { denseCopy } from './ops/support/dense-memory.ts';
export { type KernelVariants, kernelVariants } from './ops/support/kernel-variants.ts';
export {
  type RegisterBudget,
  type RowPlan,
  launchRows,
  rowPlan,
  vectorLength,
} from './ops/support/row-kernel.ts';
export { type TensorMapDescription, tensorMapBytes } from './devices/cuda/launch/tensor-map.ts';

// Memory and shapes.
export { sameShape } from './tensor/shape.ts';
export { type StoredElements, shareMemory } from './tensor/storage/overlap.ts';
export { valueBeyond } from './ops/copy/value-beyond.ts';

// For what holds while a function runs, or is compiled.
export { currentTrace } from './tensor/tracing.ts';
export { refuseAsync, refusePromise } from './tensor/lifetime/synchronous.ts';

// The GPU behind a device or a lowering's context: streams, events, pools, pinned memory, tensor maps.
export { cudaDevice } from './native/cuda-device.ts';
export type { CudaDevice } from './devices/cuda/device.ts';
export type { CudaStream, StreamPriority } from './devices/cuda/driver/stream.ts';
export type { CudaEvent, EventOptions } from './devices/cuda/driver/event.ts';
export type { MemoryPool, SegmentSize } from './devices/cuda/memory/memory-pool.ts';
export type { PinnedMemory } from './devices/cuda/memory/pinned-memory.ts';

// Libraries and host memory.
export {
  type LibraryDescription,
  type LoadedLibrary,
  libraries,
  loadLibrary,
} from './devices/cuda/driver/library-search.ts';
export {
  type NativeArgument,
  type NativeFunction,
  type NativeFunctions,
  type Prototypes,
  declareFunctions,
  ffi,
} from './native/ffi.ts';
export { HostMemory, addressOf } from './native/host-memory.ts';
export { keepLibrary } from './native/keep-library.ts';
