// For projects whose `lib` has no Symbol.dispose, which tensors do have.
/// <reference lib="esnext.disposable" preserve="true" />

// An NVIDIA GPU played by the CPU, for tests of ops with kernels. `@roofline/cuda/testing` has the GPU beneath.
export { openEmulatedDevice } from './testing/emulated-device.ts';
// One that only counts its memory.
export { openPlanningDevice } from './testing/planning-device.ts';
