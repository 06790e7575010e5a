import { isDeepStrictEqual } from 'node:util';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { sameShape } from '../../base/shape.ts';
import { fusedCall } from './fused-ops.ts';
import { areIndependent, isSameOperand } from './operands.ts';
import { rewritesOf } from './rewrites-of.ts';

/** How many calls after a call its partner is looked for: a product, its gradient and casts lie between those of one layer. */
const farthest = 12;

/**
 * Makes one kernel of two calls that do the same to tensors of the same layout, where the op's kernel takes two: the rotation
 * of queries and keys, or the calls that write keys and values to a cache.
 */
export function pairCalls(graph: Graph): Graph {
  const calls = [...graph.calls];
  for (let first = 0; first < calls.length; first++) {
    if (!takesTwo(calls[first]!)) continue;
    const end = Math.min(calls.length, first + farthest);
    for (let second = first + 1; second < end; second++) {
      const [a, b] = [calls[first]!, calls[second]!];
      if (!doAlike(a, b) || !areIndependent(a, b)) continue;
      const between = calls.slice(first + 1, second);
      const pair = pairOf(a, b);
      if (between.every((call) => areIndependent(call, b)))
        calls.splice(first, second - first + 1, pair, ...between);
      else if (between.every((call) => areIndependent(call, a)))
        // The call after the first has taken its place, and may have a partner itself.
        calls.splice(first--, 1 + between.length + 1, ...between, pair);
      else continue;
      break;
    }
  }
  return { ...graph, calls };
}

/** The indices of the inputs of which a pair has two. */
function doubledIn(call: Call): readonly number[] {
  return rewritesOf(call).takesTwo ?? [];
}

function takesTwo(call: Call): boolean {
  const { inputs, outputs, live } = call;
  if (doubledIn(call).length === 0 || live !== null || outputs.length !== 1) return false;
  return inputs.slice(1).every(({ storage }) => storage !== outputs[0]!.storage);
}

function doAlike(a: Call, b: Call): boolean {
  return (
    a.op === b.op &&
    takesTwo(b) &&
    isDeepStrictEqual(a.attributes, b.attributes) &&
    a.inputs.every((input, i) =>
      (doubledIn(a).includes(i) ? liesAlike : isSameOperand)(input, b.inputs[i]!),
    ) &&
    liesAlike(a.outputs[0]!, b.outputs[0]!)
  );
}

function liesAlike(a: Operand, b: Operand): boolean {
  const step = ({ shape, strides }: Operand, d: number) => (shape[d] === 1 ? 0 : strides[d]);
  return (
    a.dtype === b.dtype && sameShape(a.shape, b.shape) && a.strides.every((_, d) => step(a, d) === step(b, d))
  );
}

function pairOf(a: Call, b: Call): Call {
  const inputs = a.inputs.flatMap((input, i) => (doubledIn(a).includes(i) ? [input, b.inputs[i]!] : [input]));
  const outputs = [a.outputs[0]!, b.outputs[0]!];
  return { ...fusedCall([a, b], inputs, outputs, { cuda: a.op.cuda as never }), attributes: a.attributes };
}
