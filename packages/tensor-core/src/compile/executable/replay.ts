import { type OperandLayout, operandLayout } from '../../op/operand-layout.ts';
import type { ProgramReplay, ReplayedOp } from '../../op/replay.ts';
import { attributesOf } from './per-run-attributes.ts';
import type { Call, Operand, Program } from '../graph/graph.ts';

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
