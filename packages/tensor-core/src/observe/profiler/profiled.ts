import type { Cost } from '../../op/op.ts';

/** Something that ran on a device. Times are microseconds since the profile began. */
export interface ProfiledKernel {
  /** Demangled; on the CPU the operator of an ONNX node. */
  readonly name: string;
  readonly kind: 'kernel' | 'memcpy' | 'memset';
  readonly startUs: number;
  readonly durationUs: number;
  /** The queue it ran on: `cuda:0 stream 13`, `cuda:0 stream 13, branch` beside others of one CUDA graph, or `cpu`. */
  readonly stream: string;
  /** Index of the op that queued it; null if no op did, as for copies to and from the host. */
  readonly op: number | null;
  readonly byteLength: number | null;
  readonly grid: readonly [number, number, number] | null;
  readonly block: readonly [number, number, number] | null;
}

/** One call of an op. */
export interface ProfiledOp {
  readonly name: string;
  /** For a fused op of a compiled function, the names of the ops that it replaces, in their order; else empty. */
  readonly members: readonly string[];
  /** Whether it is a matrix product, or contains some, according to autocast's classes. */
  readonly isMatrixProduct: boolean;
  /** Of what it reads first; of the operands of its product, where it contains one. */
  readonly dtype: string;
  readonly cost: Cost;
  /** Index of the innermost open range. */
  readonly range: number | null;
  /** Bytes of tensors on the device when the op began, its outputs included. */
  readonly allocatedBytes: number;
  /** When the host ran it (CPU) or queued it (GPU). */
  readonly hostStartUs: number;
  readonly hostDurationUs: number;
}

/** An opening of a range in which an op ran. */
export interface ProfiledRange {
  readonly name: string;
  /** Index of the range that it was opened in. */
  readonly parent: number | null;
}
