import type { DType } from '../../base/dtype.ts';
import type { Shape } from '../../base/shape.ts';
import type { Call, Program } from '../graph/graph.ts';

/** A row of a program's table: one call of an op, as the device runs it. */
export interface ExplainedCall {
  readonly op: string;
  /** The ops of the function that it does the work of, in their order, where it is several in one; else none. */
  readonly members: readonly string[];
  /** The names of the ranges around it, outermost first. */
  readonly range: readonly string[];
  readonly inputs: readonly ExplainedOperand[];
  readonly outputs: readonly ExplainedOperand[];
  /** Which launch it is a part of, from 0: on a GPU there is one, on the CPU one for each ONNX graph. */
  readonly launch: number;
  /** Its kernels, copies and fills; null on the CPU, and on a GPU before the program has run. */
  readonly nodes: number | null;
}

/** A tensor of a program. */
export interface ExplainedOperand {
  /** Operands of one number lie in one storage. */
  readonly storage: number;
  /** `made` by the program, or where it is given from; a `copy` of parameters, in lower precision, stays from run to run. */
  readonly source: 'made' | 'argument' | 'captured' | 'constant' | 'gradient' | 'copy';
  readonly dtype: DType;
  readonly shape: Shape;
}

/** The table of launches of calls, in their order; `nodes` are those of each call. */
export function explainCalls(
  { storages }: Pick<Program, 'storages'>,
  launches: readonly (readonly Call[])[],
  nodes: readonly number[] | null,
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
  }));
}

/** As many as the rows would be with each member by itself, which is one kernel or more; null where nodes are not known. */
export function nodesBefore(rows: readonly ExplainedCall[]): number | null {
  let sum = 0;
  for (const { members, nodes } of rows) {
    if (nodes === null) return null;
    sum += Math.max(members.length, nodes);
  }
  return sum;
}
