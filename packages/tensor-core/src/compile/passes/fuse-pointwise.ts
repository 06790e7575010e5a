import type { PointwiseValue } from '../../op/cuda-lowering.ts';
import type { DType } from '../../base/dtype.ts';
import { sameShape } from '../../base/shape.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { inputNames } from '../../backends/cuda/generated/pointwise-kernel.ts';
import { fusedCall } from './fused-ops.ts';
import { isSameOperand, lastReadsOf } from './operands.ts';
import { computeDTypeOf, placesRead, textsOf } from './pointwise-call.ts';

// Limits of one generated kernel.
const mostInputs = 8;
const mostOperands = 10;

/** The texts of a fused kernel: an expression for each output, the values in between, and the scalars of all members. */
interface FusedKernel {
  readonly expressions: readonly string[];
  readonly values: readonly PointwiseValue[];
  readonly scalars: readonly number[];
}

/**
 * Makes one op of each chain of element-wise ops: what they pass on stays in registers, rounded to its dtype in memory, so that
 * results are the same bits.
 */
export function fusePointwise(graph: Graph): Graph {
  const calls: Call[] = [];
  const reads = lastReadsOf(graph.calls);
  let group = new PointwiseGroup(graph, reads);
  const flush = () => {
    calls.push(...group.finish());
    group = new PointwiseGroup(graph, reads);
  };
  graph.calls.forEach((call, i) => {
    if (group.tryAdd(call, i)) return;
    if (group.isIndependentOf(call)) {
      calls.push(call);
      return;
    }
    flush();
    if (!group.tryAdd(call, i)) calls.push(call);
  });
  flush();
  return { ...graph, calls };
}

/** Element-wise calls of one shape, in their order. */
class PointwiseGroup {
  readonly #graph: Graph;
  /** By storage, the last call that reads it. */
  readonly #lastReads: ReadonlyMap<number, number>;
  readonly #members: Call[] = [];
  /** What the members read that none of them has made. */
  readonly #inputs: Operand[] = [];
  /** What they write; several may lie side by side in a joint storage. */
  #written: readonly Operand[] = [];
  #lastIndex = 0;

  constructor(graph: Graph, lastReads: ReadonlyMap<number, number>) {
    this.#graph = graph;
    this.#lastReads = lastReads;
  }

  /** Adds a call if it fits; `index` is its place in the graph. */
  tryAdd(call: Call, index: number): boolean {
    if (!isPointwise(call) || !this.#hasShapeAndDType(call)) return false;
    const fresh: Operand[] = [];
    for (const place of placesRead(call)) {
      const input = call.inputs[place]!;
      if (isAmong([...this.#written, ...this.#inputs, ...fresh], input)) continue;
      if (this.#written.some(({ storage }) => storage === input.storage)) return false;
      fresh.push(input);
    }
    // Read in another layout, something overwritten would be seen partly before and partly after.
    const isOverwrittenElsewhere = call.outputs.some((output) =>
      [...this.#inputs, ...fresh, ...this.#written].some(
        (known) => known.storage === output.storage && !isSameOperand(known, output),
      ),
    );
    const written = [...this.#written, ...call.outputs.filter((output) => !isAmong(this.#written, output))];
    const inputs = [...this.#inputs, ...fresh];
    const tooMany = inputs.length > mostInputs || inputs.length + written.length > mostOperands;
    if (isOverwrittenElsewhere || tooMany) return false;
    this.#members.push(call);
    this.#inputs.push(...fresh);
    this.#written = written;
    this.#lastIndex = index;
    return true;
  }

  /** Whether a call may run before the group as well as after it. */
  isIndependentOf({ inputs, outputs }: Call): boolean {
    const apart = (mine: readonly Operand[], others: readonly Operand[]) =>
      mine.every((a) => others.every((b) => a.storage !== b.storage));
    return apart(this.#written, inputs) && apart([...this.#written, ...this.#inputs], outputs);
  }

  /** The group as one call; unchanged, where it is a single call or does not fit into one kernel. */
  finish(): Call[] {
    if (this.#members.length < 2) return this.#members;
    const outputs = this.#written.filter(({ storage }) => this.#isNeeded(storage));
    const dtype = dtypeOf(this.#members[0]!);
    if (outputs.length === 0 || this.#inputs.length === 0 || computeDTypeOf(this.#inputs, outputs) !== dtype)
      return this.#members;
    const kernel = writeKernel(this.#members, this.#inputs, outputs);
    const cuda = {
      kind: 'pointwise',
      expressions: () => kernel.expressions,
      values: () => kernel.values,
    } as const;
    return [fusedCall(this.#members, this.#inputs, outputs, { scalars: () => kernel.scalars, cuda })];
  }

  #hasShapeAndDType(call: Call): boolean {
    const first = this.#members[0];
    if (!first) return true;
    return sameShape(call.outputs[0]!.shape, first.outputs[0]!.shape) && dtypeOf(call) === dtypeOf(first);
  }

  #isNeeded(storage: number): boolean {
    const isReadLater = (this.#lastReads.get(storage) ?? -1) > this.#lastIndex;
    return isReadLater || !isIntermediate(this.#graph, storage);
  }
}

function isPointwise({ op, live, outputs }: Call): boolean {
  // All results of a call are of one shape.
  return op.cuda.kind === 'pointwise' && live === null && outputs[0]!.size > 0;
}

function isAmong(known: readonly Operand[], operand: Operand): boolean {
  return known.some((other) => isSameOperand(other, operand));
}

function dtypeOf({ inputs, outputs }: Call): DType {
  return computeDTypeOf(inputs, outputs);
}

/** The members' expressions in order, each over the inputs and the results of earlier members. */
function writeKernel(
  members: readonly Call[],
  inputs: readonly Operand[],
  outputs: readonly Operand[],
): FusedKernel {
  const values: PointwiseValue[] = [];
  const scalars: number[] = [];
  /** What has been made so far, and its name: the last one is that of its current elements. */
  const named: { readonly operand: Operand; readonly name: string }[] = [];
  const madeName = (operand: Operand) => named.findLast((made) => isSameOperand(made.operand, operand))?.name;
  const nameOf = (operand: Operand) =>
    madeName(operand) ?? inputNames[inputs.findIndex((input) => isSameOperand(input, operand))]!;
  for (const call of members) {
    const firstScalar = scalars.length;
    scalars.push(...(call.op.scalars?.(call.attributes as never) ?? []));
    /** From the call's names of inputs and values to the kernel's. */
    const names = new Map(placesRead(call).map((i) => [inputNames[i]!, nameOf(call.inputs[i]!)]));
    const rename = (name: string) => {
      const scalar = /^s(\d+)$/.exec(name);
      return scalar ? `s${firstScalar + Number(scalar[1])}` : (names.get(name) ?? name);
    };
    const add = (text: string, dtype: DType | null) => {
      const name = `t${values.length}`;
      values.push({ name, dtype, text: text.replace(/[A-Za-z_]\w*/g, rename) });
      return name;
    };
    const own = textsOf(call);
    for (const { name, dtype, text } of own.values) names.set(name, add(text, dtype));
    const made = own.expressions.map((text, i) => add(text, call.outputs[i]!.dtype));
    // Only now, because all expressions of a call read what was there before it.
    named.push(...call.outputs.map((operand, i) => ({ operand, name: made[i]! })));
  }
  return { values, scalars, expressions: outputs.map((output) => madeName(output)!) };
}
