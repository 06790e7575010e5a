// For projects whose `lib` has no Symbol.dispose.
/// <reference lib="esnext.disposable" preserve="true" />

// What GPUs are made of, for packages that compose a device of their own on them: the driver and NVIDIA's libraries call by
// call. Arguments are those of the libraries and are not checked.

export { Gpu } from './gpu.ts';
export { type GpuParts, type GpuStandIns, makeGpuParts } from './gpu-parts.ts';
export { CudaDriver, type DriverFunctions, loadDriver } from './driver/driver.ts';
export { type CurrentStream, Streams } from './driver/stream.ts';
export { architectureOf } from './architecture.ts';
export { factsOf } from './properties.ts';
export { haveNvlink } from './driver/nvml.ts';
export { CudaGraph } from './graph.ts';

// Memory.
export { CachingAllocator, blockBytes } from './memory/allocator.ts';
export { Block } from './memory/block.ts';
export { type ExportedMemory, closePeerMemory, exportMemory, openPeerMemory } from './memory/peer-memory.ts';
export type { Scratch } from './memory/stream-scratch.ts';

// Kernels.
export { type LaunchRecorder, Launcher, type PreparedLaunch } from './launch/launch.ts';
export { TensorMapEncoder } from './launch/tensor-map.ts';
export { type BuilderParts, type Defines, KernelBuilder, KernelPostponed } from './nvrtc/compile.ts';
export { compileAside } from './nvrtc/common-builder.ts';
export type { BeginBatch, KernelBatch, KeepImage } from './nvrtc/kernel-batch.ts';
export { KernelModules } from './nvrtc/modules.ts';
export { type CompileRequest, type KernelCompiler, loadNvrtc } from './nvrtc/nvrtc.ts';

// Products by cublasLt, and what ran on a GPU by CUPTI.
export {
  type ColumnMajorLayout,
  CublasLt,
  type CublasLtFunctions,
  type LtMatmul,
  type LtMatmulDescription,
  computeTypes,
  dataTypes,
} from './cublaslt.ts';
export { Cupti, type RecordedActivities, loadCupti } from './cupti/cupti.ts';
export type { ActivityRecord, ApiCall, GpuActivity } from './cupti/cupti-records.ts';
