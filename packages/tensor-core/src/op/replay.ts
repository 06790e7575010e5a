import type { TensorSpec } from '../base/memory-view.ts';
import type { Device } from '../tensor/device.ts';
import type { OpenRange } from '../tensor/ranges/range.ts';
import type { ComputeOp } from './op.ts';
import type { OperandLayout } from './operand-layout.ts';

/** One op of a graph, in one replay. */
export interface ReplayedOp {
  readonly op: ComputeOp<never>;
  readonly inputs: readonly OperandLayout[];
  readonly outputs: readonly TensorSpec[];
  readonly attributes: unknown;
}

/** One call of a graph, in one replay. */
export interface ReplayedCall extends ReplayedOp {
  /** The innermost of the ranges around it in the compiled function; its `path` has the names of all. */
  readonly range: OpenRange | null;
  /** For a fused call the ops that it replaces, in their order; else empty. */
  readonly members: readonly ReplayedOp[];
  /** How many kernels, copies and fills it is in the CUDA graph. They run one after the other. */
  readonly nodes: number;
  /** Whether it runs on a branch of the CUDA graph, beside other calls. */
  readonly isBeside: boolean;
}

/** One launch of a compiled graph. */
export interface Replay {
  /** Of the compiled function; empty if it has none. */
  readonly name: string;
  readonly device: Device;
  /** In the order in which they run, but for those on a branch. */
  readonly calls: readonly ReplayedCall[];
}
