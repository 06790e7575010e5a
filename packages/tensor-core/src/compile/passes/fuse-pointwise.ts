import type { PointwiseValue } from '../../op/cuda-lowering.ts';
import type { DType } from '../../base/dtype.ts';
import { sameShape } from '../../base/shape.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { inputNames } from '../../backends/cuda/generated/pointwise-kernel.ts';
import { fusedCall } from './fused-ops.ts';
import { isSameOperand, lastReadsOf } from './operands.ts';
import { computeDTypeOf, placesRead, textsOf } from './pointwise-call.ts';

// What one generated kernel takes.
const mostInputs = 8;
const mostOperands = 10;

/** Calls that become one kernel, and what of them reaches memory. */
interface FusedKernel {
  readonly expressions: readonly string[];
  readonly values: readonly PointwiseValue[];
  readonly scalars: readonly number[];
}

/**
 * A program whose chains of element-wise ops are one op each: what they hand on stays in registers, rounded as memory would
 * have rounded it, so that results are the same bits.
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

/** Element-wise calls over one shape, in their order. */
class PointwiseGroup {
  readonly #graph: Graph;
  /** By storage, the last call that reads it. */
  readonly #lastReads: ReadonlyMap<number, number>;
  readonly #members: Call[] = [];
  /** What the members read that none of them has made. */
  readonly #inputs: Operand[] = [];
  /** What they write, the last to each place. */
  readonly #written = new Map<number, Operand>();
  #lastIndex = 0;

  constructor(graph: Graph, lastReads: ReadonlyMap<number, number>) {
    this.#graph = graph;
    this.#lastReads = lastReads;
  }

  /** Takes a call in if it fits; `index` is its place in the program. */
  tryAdd(call: Call, index: number): boolean {
    if (!isPointwise(call) || !this.#hasShapeAndDType(call)) return false;
    const fresh: Operand[] = [];
    for (const place of placesRead(call)) {
      const input = call.inputs[place]!;
      const written = this.#written.get(input.storage);
      if (written) {
        if (!isSameOperand(written, input)) return false;
      } else if (![...this.#inputs, ...fresh].some((known) => isSameOperand(known, input))) {
        fresh.push(input);
      }
    }
    // Another layout of what is overwritten would see some elements before and some after.
    const isOverwrittenElsewhere = call.outputs.some((output) =>
      [...this.#inputs, ...fresh, ...this.#written.values()].some(
        (known) => known.storage === output.storage && !isSameOperand(known, output),
      ),
    );
    const written = new Map([
      ...this.#written,
      ...call.outputs.map((output) => [output.storage, output] as const),
    ]);
    const inputs = [...this.#inputs, ...fresh];
    const tooMany = inputs.length > mostInputs || inputs.length + written.size > mostOperands;
    if (isOverwrittenElsewhere || tooMany) return false;
    this.#members.push(call);
    this.#inputs.push(...fresh);
    for (const [storage, output] of written) this.#written.set(storage, output);
    this.#lastIndex = index;
    return true;
  }

  /** Whether a call may run before the group as well as behind it. */
  isIndependentOf({ inputs, outputs }: Call): boolean {
    const isRead = (storage: number) => this.#inputs.some((input) => input.storage === storage);
    return (
      inputs.every(({ storage }) => !this.#written.has(storage)) &&
      outputs.every(({ storage }) => !this.#written.has(storage) && !isRead(storage))
    );
  }

  /** The group as one call; as it was, where that is one already or no kernel could hold it. */
  finish(): Call[] {
    if (this.#members.length < 2) return this.#members;
    const outputs = [...this.#written.values()].filter(({ storage }) => this.#isNeeded(storage));
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
    const isReadBehind = (this.#lastReads.get(storage) ?? -1) > this.#lastIndex;
    return isReadBehind || !isIntermediate(this.#graph, storage);
  }
}

function isPointwise({ op, live, outputs }: Call): boolean {
  return (
    op.cuda.kind === 'pointwise' &&
    live === null &&
    outputs.length > 0 &&
    outputs.every(({ shape, size }) => size > 0 && sameShape(shape, outputs[0]!.shape)) &&
    // What a group writes it knows by storage; parts of a joint one would be one.
    new Set(outputs.map(({ storage }) => storage)).size === outputs.length
  );
}

function dtypeOf({ inputs, outputs }: Call): DType {
  return computeDTypeOf(inputs, outputs);
}

/** The members' expressions one after the other, each over the inputs and over what those before it made. */
function writeKernel(
  members: readonly Call[],
  inputs: readonly Operand[],
  outputs: readonly Operand[],
): FusedKernel {
  const values: PointwiseValue[] = [];
  const scalars: number[] = [];
  /** What a storage's elements are called now. */
  const named = new Map<number, string>();
  const nameOf = (operand: Operand) =>
    named.get(operand.storage) ?? inputNames[inputs.findIndex((input) => isSameOperand(input, operand))]!;
  for (const call of members) {
    const firstScalar = scalars.length;
    scalars.push(...(call.op.scalars?.(call.attributes as never) ?? []));
    /** By the names of the call's inputs and values, those that the kernel has for them. */
    const names = new Map(placesRead(call).map((i) => [inputNames[i]!, nameOf(call.inputs[i]!)]));
    const rename = (name: string) => {
      const scalar = /^s(\d+)$/.exec(name);
      return scalar ? `s${firstScalar + Number(scalar[1])}` : (names.get(name) ?? name);
    };
    const add = (text: string, dtype: DType) => {
      const name = `t${values.length}`;
      values.push({ name, dtype, text: text.replace(/[A-Za-z_]\w*/g, rename) });
      return name;
    };
    const own = textsOf(call);
    for (const { name, dtype, text } of own.values) names.set(name, add(text, dtype));
    const made = own.expressions.map((text, i) => add(text, call.outputs[i]!.dtype));
    // Only now: all expressions of a call see what was there before it.
    call.outputs.forEach(({ storage }, i) => named.set(storage, made[i]!));
  }
  return { values, scalars, expressions: outputs.map(({ storage }) => named.get(storage)!) };
}
