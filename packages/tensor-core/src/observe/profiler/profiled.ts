import type { Cost } from '../../op/op.ts';

/** Something that ran on a device. Times are microseconds since the profile began. */
export interface ProfiledKernel {
  /** Demangled; on the CPU the operator of an ONNX node. */
  readonly name: string;
  readonly kind: 'kernel' | 'memcpy' | 'memset';
  readonly startUs: number;
  readonly durationUs: number;
  /** The queue it ran on: `cuda:0 stream 13`, or `cpu`. */
  readonly stream: string;
  /** Index of the op that queued it; null for what no op queued, such as copies to and from the host. */
  readonly op: number | null;
  readonly byteLength: number | null;
  readonly grid: readonly [number, number, number] | null;
  readonly block: readonly [number, number, number] | null;
}

/** One call of an op. */
export interface ProfiledOp {
  readonly name: string;
  /** The names of the ops that a compiled function has made one of, in their order; empty for an op of its own. */
  readonly members: readonly string[];
  /** Whether it is a matrix product, or holds some, as autocast sees it. */
  readonly isMatrixProduct: boolean;
  readonly dtype: string;
  readonly cost: Cost;
  /** Index of the innermost range that was open. */
  readonly range: number | null;
  /** What tensors held on the device when the op began, its outputs among them. */
  readonly allocatedBytes: number;
  /** When the host ran it (CPU) or queued it (GPU). */
  readonly hostStartUs: number;
  readonly hostDurationUs: number;
}

/** One opening of a range in which an op ran. */
export interface ProfiledRange {
  readonly name: string;
  /** Index of the range that it was opened in. */
  readonly parent: number | null;
}
