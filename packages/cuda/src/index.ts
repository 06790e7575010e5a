// For projects whose `lib` has no Symbol.dispose.
/// <reference lib="esnext.disposable" preserve="true" />

export { openGpu } from './open-gpu.ts';
export { gpuCount } from './driver/driver.ts';
export type { Gpu } from './gpu.ts';
export type { DeviceFacts } from './properties.ts';
export { type Diagnosis, diagnose } from './diagnose.ts';
export * from './base/errors.ts';

// Kernels of `.cu` files.
export type { CudaKernel, CudaProperties, KernelResources, KernelSpec } from './kernel.ts';
export { packageKernels } from './base/host/package-kernels.ts';
export { KernelStruct } from './launch/kernel-struct.ts';
export type { KernelArguments, KernelParameters, ParameterType } from './launch/kernel-parameters.ts';
export { type KernelVariants, kernelVariants } from './launch/kernel-variants.ts';
export {
  type CompilableKernel,
  type CompileKernelsOptions,
  compileKernels,
} from './nvrtc/compile-kernels.ts';
export { type TensorMapDescription, tensorMapBytes } from './launch/tensor-map.ts';

// Memory, and the queues of work that use it.
export type { GpuMemory } from './memory/gpu-memory.ts';
export type { PinnedMemory } from './memory/pinned-memory.ts';
export type { MemoryPool, SegmentSize } from './memory/memory-pool.ts';
export type { DeviceBuffer, MemoryStatistics } from './base/device-memory.ts';
export type { CudaStream, StreamPriority } from './driver/stream.ts';
export type { CudaEvent, EventOptions } from './driver/event.ts';

// What holds a GPU's clocks down.
export { type ClockLimit, type ClockReading, type GpuClocks, gpuClocks } from './driver/nvml.ts';

// NVIDIA's libraries.
export {
  type LibraryDescription,
  type LoadedLibrary,
  libraries,
  loadLibrary,
} from './driver/library-search.ts';
