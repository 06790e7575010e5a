import { KernelBuilder, type Defines } from '../nvrtc/compile.ts';
import { loadNvrtc } from '../nvrtc/nvrtc.ts';
import { LibraryNotFoundError } from '../base/errors.ts';

/** Keeps nothing, so that every kernel is compiled. */
const noCache = { read: () => undefined, write: () => false };

/** The version of NVRTC, by which GPUs get their kernels, such as `13.0`; null where it is not found. It needs no GPU. */
export function nvrtcVersion(): string | null {
  try {
    return loadNvrtc().version;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return null;
    throw error;
  }
}

/**
 * The machine code of a `.cu` file for an architecture such as `sm_90a`, as the GPU's own process would compile it: NVRTC has
 * neither the host's headers nor its compiler's built-in functions, which nvcc has. Throws a KernelCompileError.
 */
export function compileByNvrtc(source: URL, defines: Defines, architecture: string): Uint8Array {
  return new KernelBuilder(architecture, { cache: noCache }).buildFile(source, defines);
}
