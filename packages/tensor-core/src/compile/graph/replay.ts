import { type OperandLayout, operandLayout } from '../../backends/cpu/lowering/op-graph.ts';
import type { Device } from '../../tensor/device.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { ComputeOp } from '../../op/op.ts';
import type { OpenRange } from '../../tensor/ranges/range.ts';
import { attributesOf } from './live-attributes.ts';
import type { Call, Operand, Program } from './program.ts';

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
export interface ProgramReplay {
  /** Of the compiled function; empty for one without a name. */
  readonly name: string;
  readonly device: Device;
  /** In the order in which they run. */
  readonly calls: readonly ReplayedCall[];
}

/** A run of `program`, with the attributes of this run and the numbers of nodes of each call. */
export function replayOf(
  { name, device, calls, storages }: Pick<Program, 'name' | 'device' | 'calls' | 'storages'>,
  live: readonly unknown[],
  nodes: readonly number[],
): ProgramReplay {
  const layoutOf = (operand: Operand): OperandLayout =>
    operandLayout({ ...operand, storage: storages[operand.storage]! });
  const opOf = (call: Call): ReplayedOp => ({
    op: call.op,
    inputs: call.inputs.map(layoutOf),
    outputs: call.outputs.map(({ shape, dtype }) => ({ shape, dtype })),
    attributes: attributesOf(call, live),
  });
  return {
    name,
    device,
    calls: calls.map((call, i) => ({
      ...opOf(call),
      range: call.range,
      members: call.members?.map(opOf) ?? [],
      nodes: nodes[i]!,
    })),
  };
}
