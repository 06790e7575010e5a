import type { TensorSpec } from '../base/memory-view.ts';
import type { Device } from '../tensor/device.ts';
import type { OpenRange } from '../tensor/ranges/range.ts';
import type { ComputeOp } from './op.ts';
import type { OperandLayout } from './operand-layout.ts';

/** One op of a program, in one of its runs. */
export interface ReplayedOp {
  readonly op: ComputeOp<never>;
  readonly inputs: readonly OperandLayout[];
  readonly outputs: readonly TensorSpec[];
  readonly attributes: unknown;
}

/** One call of a program's graph. */
export interface ReplayedCall extends ReplayedOp {
  /** The innermost of the ranges around it in the compiled function; its `path` has the names of all. */
  readonly range: OpenRange | null;
  /** The ops that it does the work of, in their order, where it is several in one; else none. */
  readonly members: readonly ReplayedOp[];
  /** The kernels, copies and fills that it is in the graph. They run one behind the other. */
  readonly nodes: number;
}

/** One launch of a program as a graph. */
export interface Replay {
  /** Of the compiled function; empty for one without a name. */
  readonly name: string;
  readonly device: Device;
  /** In the order in which they run. */
  readonly calls: readonly ReplayedCall[];
}
