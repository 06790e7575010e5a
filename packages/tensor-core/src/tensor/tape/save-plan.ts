import { AutogradError } from '../../base/errors.ts';

/** The inputs and outputs, by index, that the backward pass will read. */
export interface Saves {
  readonly inputs?: readonly number[];
  readonly outputs?: readonly number[];
}

/** What the tape needs of an op, independent of attributes and of the rule's context. */
export interface DifferentiableOp {
  readonly name: string;
  saves?(needs: readonly boolean[]): Saves;
  gradient?(context: never): readonly (object | null)[];
}

/** What a recorded call keeps for the backward pass, given which of its inputs need a gradient. */
export interface Plan {
  readonly needs: readonly boolean[];
  /** Indices of inputs and of outputs. */
  readonly savedInputs: readonly number[];
  readonly savedOutputs: readonly number[];
}

const plans = new WeakMap<DifferentiableOp, Map<number, Plan>>();

/** With more inputs, their needs and their number do not fit into a key of 32 bits. */
const mostCached = 16;

/** The plan of a call whose inputs' gradients go to `edges`; made once for each op and set of needs. */
export function planOf(
  op: DifferentiableOp,
  edges: readonly (object | null)[],
  operandCount: number,
  outputCount: number,
): Plan {
  const count = edges.length;
  if (count > mostCached) return makePlan(op, edges, operandCount, outputCount);
  let needed = 0;
  for (let i = 0; i < count; i++) if (edges[i] !== null) needed |= 1 << i;
  const key = (count << mostCached) | needed;
  let ofOp = plans.get(op);
  if (!ofOp) plans.set(op, (ofOp = new Map()));
  let plan = ofOp.get(key);
  if (!plan) ofOp.set(key, (plan = makePlan(op, edges, operandCount, outputCount)));
  return plan;
}

function makePlan(
  op: DifferentiableOp,
  edges: readonly (object | null)[],
  operandCount: number,
  outputCount: number,
): Plan {
  const needs = edges.map((edge) => edge !== null);
  const { inputs = [], outputs = [] } = op.saves?.(needs) ?? {};
  requireIndices(op, 'input', inputs, operandCount);
  requireIndices(op, 'output', outputs, outputCount);
  return { needs, savedInputs: inputs, savedOutputs: outputs };
}

function requireIndices(
  { name }: DifferentiableOp,
  role: string,
  indices: readonly number[],
  count: number,
): void {
  const wrong = indices.find((index) => !Number.isInteger(index) || index < 0 || index >= count);
  if (wrong === undefined) return;
  throw new AutogradError(`${name}: its \`saves\` names ${role} ${String(wrong)}, but it has ${count}.`);
}
