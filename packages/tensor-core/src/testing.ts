// For projects whose `lib` has no Symbol.dispose, which tensors do have.
/// <reference lib="esnext.disposable" preserve="true" />

// An NVIDIA GPU played by the CPU, for tests of kernels and of what launches them. Needs g++.
export {
  KernelLimitError,
  emulatedMultiprocessors,
  hostCompilerVersion,
  openEmulatedDevice,
} from './testing/emulated-device.ts';
// One that only counts its memory.
export { openPlanningDevice } from './testing/planning-device.ts';
// What GPUs get their kernels from, which needs none.
export { compileByNvrtc, nvrtcVersion } from './testing/runtime-compiler.ts';
