// For projects whose `lib` has no Symbol.dispose.
/// <reference lib="esnext.disposable" preserve="true" />

// What everything of Roofline stands on, whatever its device: it knows neither GPUs nor tensors.

// Errors, and checks of what a function is given.
export { bytesInWords } from './base/bytes-in-words.ts';
export * from './base/errors.ts';
export { checkOptions } from './base/check-options.ts';
export {
  checkCount,
  checkFlag,
  checkFunction,
  checkNumber,
  checkObject,
  checkText,
  describeValue,
  wrongArgument,
} from './base/check-value.ts';
export { nearestOf } from './base/nearest.ts';
export { refuseAsync, refusePromise } from './base/synchronous.ts';
export { type Place, formatPlace, userPlace } from './base/host/user-place.ts';

// C functions and host memory.
export {
  type NativeArgument,
  type NativeFunction,
  type NativeFunctions,
  type Prototypes,
  declareFunctions,
  ffi,
} from './base/host/ffi.ts';
export { type FileLock, lockFile } from './base/host/file-lock.ts';
export { HostMemory, addressOf } from './base/host/host-memory.ts';
export { keepLibrary } from './base/host/keep-library.ts';
export { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from './base/float16.ts';

// Folders.
export type { Environment } from './base/host/environment.ts';
export { makeFolders } from './base/host/make-folders.ts';
export { codeFolder, packageFolder } from './base/host/package-kernels.ts';
export { cudaCode } from './base/host/package-root.ts';

// What the memory of a device is, the processor's too.
export type { DeviceBuffer, DeviceEvent, MemoryStatistics } from './base/device-memory.ts';
export type { AllocationKind, MemoryBlock, MemoryObserver, MemorySegment } from './base/memory-observer.ts';
