import type { DType } from '../../base/dtype.ts';
import type { Shape } from '../../base/shape.ts';
import type { Call, Graph } from '../graph/graph.ts';

/** One call of an op, as the device runs it. */
export interface ExplainedCall {
  readonly op: string;
  /** For a fused call the names of the function's ops that it replaces, in their order; else empty. */
  readonly members: readonly string[];
  /** The names of the ranges around it, outermost first. */
  readonly range: readonly string[];
  readonly inputs: readonly ExplainedOperand[];
  readonly outputs: readonly ExplainedOperand[];
  /** Which launch it belongs to, from 0: on a GPU there is one, on the CPU one for each ONNX graph. */
  readonly launch: number;
  /** How many kernels, copies and fills it is; null on the CPU, and on a GPU before the first run. */
  readonly nodes: number | null;
  /**
   * On a GPU, for a call that runs beside the chain of the others: the index of the one that waits for it, or the number of calls
   * where only the end does. It may run at the same time as any between. Null for calls of the chain, and on the CPU.
   */
  readonly waitedForBy: number | null;
}

/** A tensor of a graph. */
export interface ExplainedOperand {
  /** Operands of one number lie in one storage. */
  readonly storage: number;
  /** `made` by the graph, or where it comes from; a `copy` of parameters, in lower precision, is kept from run to run. */
  readonly source: 'made' | 'argument' | 'captured' | 'constant' | 'gradient' | 'copy';
  readonly dtype: DType;
  readonly shape: Shape;
}

/** The table of calls, by launches in their order; `nodes` are each call's, if known. */
export function explainCalls(
  { storages }: Pick<Graph, 'storages'>,
  launches: readonly (readonly Call[])[],
  nodes: readonly number[] | null,
  branches: ReadonlyMap<number, number> = new Map(),
): ExplainedCall[] {
  const operand = ({ storage, dtype, shape }: Call['inputs'][number]): ExplainedOperand => ({
    ...{ storage, dtype, shape },
    source: storages[storage]!.source.kind,
  });
  const rows = launches.flatMap((calls, launch) => calls.map((call) => ({ call, launch })));
  return rows.map(({ call, launch }, i) => ({
    op: call.op.name,
    members: call.members?.map(({ op }) => op.name) ?? [],
    range: call.range?.path ?? [],
    inputs: call.inputs.map(operand),
    outputs: call.outputs.map(operand),
    launch,
    nodes: nodes?.[i] ?? null,
    waitedForBy: branches.get(i) ?? null,
  }));
}

/** How many nodes there would be without fusion, at least: one for each member. Null where nodes are not known. */
export function nodesBefore(rows: readonly ExplainedCall[]): number | null {
  let sum = 0;
  for (const { members, nodes } of rows) {
    if (nodes === null) return null;
    sum += Math.max(members.length, nodes);
  }
  return sum;
}
