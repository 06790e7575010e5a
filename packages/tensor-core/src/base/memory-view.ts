import type { DeviceBuffer } from '@roofline/cuda/host';
import type { DType } from './dtype.ts';
import type { Layout, Shape } from './shape.ts';

/** What a rule may know of a tensor without reading it. A `Tensor` is one. */
export interface TensorSpec {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** Elements in device memory; strides count elements. */
export interface StridedMemory extends TensorSpec {
  /** Where the first element lies. */
  readonly address: number;
  readonly strides: Shape;
}

/** An allocation, which several tensors may share. */
export interface StoredMemory {
  readonly byteLength: number;
  /** A lowering that writes "in place" into a fresh buffer replaces it. */
  buffer: DeviceBuffer;
  /**
   * Of tensors' memory, not of workspaces: what works on it after the lowering that began that has returned, such as a collective.
   * `wait` is called before `buffer` is next given out; if it throws what went wrong, it does so again each time.
   */
  noteUnderWay?(wait: () => void): void;
  /** Of tensors' memory: keeps it, even once nothing refers to it, until the function that is returned is called, once. */
  keepMemory?(): () => void;
  /**
   * Of tensors' memory: in-place ops may not write the bytes of `region`, with an error that names `holder`, until the function that
   * is returned is called.
   */
  hold?(region: { readonly start: number; readonly end: number }, holder: string): () => void;
}

/** A tensor as lowerings see it: where its elements lie, and nothing of gradients or handles. */
export interface MemoryView extends StridedMemory, Layout {
  readonly storage: StoredMemory;
  /** Elements. */
  readonly size: number;
  /** Of its own elements. */
  readonly byteLength: number;
  readonly isContiguous: boolean;
}
