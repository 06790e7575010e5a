// For projects whose `lib` has no Symbol.dispose.
/// <reference lib="esnext.disposable" preserve="true" />

// An NVIDIA GPU played by the CPU, for tests of kernels and of what launches them. Needs g++.
export {
  EmulatedGpu,
  type EmulatedGpuOptions,
  KernelLimitError,
  openEmulatedGpu,
} from './testing/emulated-gpu.ts';
export { hostCompilerVersion } from './testing/emulated-compiler.ts';
export { EmulatedDriver, emulatedMultiprocessors } from './testing/emulated-driver.ts';
export { emulatedCublasLt } from './testing/emulated-cublaslt.ts';
// One that only counts its memory.
export { openPlanningGpu } from './testing/planning-gpu.ts';
// What GPUs get their kernels from, which needs none.
export { compileByNvrtc, nvrtcVersion } from './testing/runtime-compiler.ts';
