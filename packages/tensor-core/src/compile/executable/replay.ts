import { type OperandLayout, operandLayout } from '../../op/operand-layout.ts';
import type { Replay, ReplayedOp } from '../../op/replay.ts';
import { attributesOf } from './per-run-attributes.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';

/**
 * One run of a graph: `live` are the attributes of this run, `nodes` how many nodes each call is, `beside` the places of calls on
 * a branch.
 */
export function replayOf(
  { name, device, calls, storages }: Pick<Graph, 'name' | 'device' | 'calls' | 'storages'>,
  live: readonly unknown[],
  nodes: readonly number[],
  beside: Pick<ReadonlySet<number>, 'has'>,
): Replay {
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
      isBeside: beside.has(i),
    })),
  };
}
