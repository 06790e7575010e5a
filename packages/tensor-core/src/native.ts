// What a package needs to bring kernels and libraries of its own; documented in the README under "Kernels of your own".
export { packageKernels } from './native/package-kernels.ts';
export {
  type NativeArgument,
  type NativeFunction,
  type NativeFunctions,
  type Prototypes,
  declareFunctions,
  ffi,
} from './native/ffi.ts';
export { HostMemory, addressOf } from './native/host-memory.ts';
