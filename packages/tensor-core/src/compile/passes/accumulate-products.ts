import type { ComputeOp } from '../../op/op.ts';
import { addmmInPlaceOp, addmmOp } from '../../ops/matrix/addmm.ts';
import { matmulOp } from '../../ops/matrix/matmul.ts';
import { byteSize } from '../../base/dtype.ts';
import { sameShape } from '../../base/shape.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { isCast, isOp } from './is-op.ts';
import { isSameOperand, leaveAsIs, usesOf } from './operands.ts';
import { expressionOf } from './pointwise-call.ts';

/** A product with an addition, as one call. */
interface Accumulation {
  /** Replaces the sum. */
  readonly call: Call;
  /** What is dropped: the product, and the cast that widens it, if there is one. */
  readonly replaced: readonly [Call, ...Call[]];
}

/**
 * Where the product of float16 or bfloat16 operands is only added to something, makes one call of product and addition, in
 * the addition's place: for a residual connection, or the gradient of something used several times. Only the sum is then in
 * memory.
 *
 * The sum is rounded once. Eager code rounds the product to the operands' dtype before it adds, even where the sum is
 * float32.
 */
export function accumulateProducts(graph: Graph): Graph {
  const uses = usesOf(graph.calls);
  const places = new Map(graph.calls.map((call, i) => [call, i]));
  const replaced = new Set<Call>();
  const calls = graph.calls.map((sum, at) => {
    for (const [added, other] of addendsOf(sum, places, uses)) {
      const accumulation = accumulationOf(graph, uses, sum, added, other);
      if (!accumulation) continue;
      const [product] = accumulation.replaced;
      if (!leaveAsIs(graph.calls.slice(places.get(product)! + 1, at), product.inputs)) continue;
      for (const call of accumulation.replaced) replaced.add(call);
      return accumulation.call;
    }
    return sum;
  });
  return { ...graph, calls: calls.filter((_, i) => !replaced.has(graph.calls[i]!)) };
}

/** Whether a call is what `accumulateProducts` makes. */
export function isAccumulation({ op }: Call): boolean {
  return isOp(op, addmmOp) || isOp(op, addmmInPlaceOp);
}

/** Pairs of a sum's addend that may be a product, and what it is added to; of two, the one made later comes first. */
function addendsOf(
  sum: Call,
  places: ReadonlyMap<Call, number>,
  uses: ReadonlyMap<number, readonly Call[]>,
): readonly (readonly [Operand, Operand])[] {
  if (sum.live !== null || expressionOf(sum) !== 'a + b') return [];
  const [a, b] = sum.inputs as readonly [Operand, Operand];
  if (sum.op.mutates) return [[b, a]];
  const place = ({ storage }: Operand) => places.get(uses.get(storage)![0]!)!;
  return place(a) > place(b) ? [[a, b], [b, a]] : [[b, a], [a, b]]; // prettier-ignore
}

function accumulationOf(
  graph: Graph,
  uses: ReadonlyMap<number, readonly Call[]>,
  sum: Call,
  added: Operand,
  c: Operand,
): Accumulation | null {
  const maker = onlyMaker(graph, uses, added, sum);
  const isWidened = maker !== null && isWidening(maker);
  const product = isWidened ? onlyMaker(graph, uses, maker.inputs[0]!, maker) : maker;
  if (!product || product.live !== null || !isOp(product.op, matmulOp)) return null;
  const [a, b] = product.inputs as readonly [Operand, Operand];
  const [d] = sum.outputs as readonly [Operand];
  const { shape } = product.outputs[0]!;
  const takes = byteSize(a.dtype) === 2 && (d.dtype === a.dtype || d.dtype === 'float32');
  if (!takes || c.dtype !== d.dtype || d.size === 0 || a.shape.at(-1) === 0) return null;
  if (!c.isContiguous || !sameShape(c.shape, d.shape)) return null;
  if (product.outputs[0]!.size !== d.size || [a, b].some(({ storage }) => storage === d.storage)) return null;
  const asProduct = (operand: Operand): Operand => ({
    ...operand,
    shape,
    strides: product.outputs[0]!.strides,
  });
  const replaced: Accumulation['replaced'] = isWidened ? [product, maker] : [product];
  const call: Call = {
    ...product,
    op: (isSameOperand(c, d) ? addmmInPlaceOp : addmmOp) as ComputeOp<never>,
    inputs: [a, b, asProduct(c)],
    outputs: [asProduct(d)],
    members: [...replaced, sum],
  };
  return { call, replaced };
}

/** The call that makes all of a dense intermediate operand, if only `reader` reads it. */
function onlyMaker(
  graph: Graph,
  uses: ReadonlyMap<number, readonly Call[]>,
  { storage, isContiguous, size }: Operand,
  reader: Call,
): Call | null {
  if (!isIntermediate(graph, storage) || !isContiguous) return null;
  const [maker, user, ...others] = uses.get(storage)!;
  if (user !== reader || others.length > 0) return null;
  if (reader.inputs.filter((input) => input.storage === storage).length !== 1) return null;
  const made = maker!.outputs.find((output) => output.storage === storage)!;
  return made.size === size ? maker! : null;
}

/** Whether a call only casts to float32. */
function isWidening({ op, outputs }: Call): boolean {
  return isCast(op) && outputs[0]!.dtype === 'float32';
}
