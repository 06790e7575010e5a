import type { CompileRequest } from './nvrtc.ts';

/** Called with each image and its kernel's place; gives whether it keeps the image, which is then nobody's to take. */
export type KeepImage = (index: number, image: Uint8Array) => boolean;

/** Kernels that are compiled aside, by their places in a list. */
export interface KernelBatch {
  /**
   * Waits for a kernel, and gives its image once. Null where it is kept elsewhere, and where there is none: who compiles the
   * kernel itself sees what is wrong with it.
   */
  take(index: number): Uint8Array | null;
}

/** Begins to compile kernels aside; `CompileBatch` does. */
export type BeginBatch = (requests: readonly CompileRequest[], keep: KeepImage) => KernelBatch;
