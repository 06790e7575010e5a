import { type ArenaPart, fullestCall } from '../cuda/arena-plan.ts';
import { partsOf } from '../cuda/arena.ts';
import type { Call, Graph } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import { fusePointwise } from './fuse-pointwise.ts';
import { areIndependent, isSameOperand } from './operands.ts';
import { placesRead } from './pointwise-call.ts';

/** How many calls after a call one that reads the same is looked for: products, a cast and an update lie between. */
const farthest = 12;

/**
 * Makes one kernel of an element-wise call and a later one that reads all that it reads, where everything in between that needs
 * its result can wait: in the gradient of a block that is made again, an activation is needed for the gradient of a weight, and
 * what it was made from for its own gradient. Results are the same bits, and no more memory is needed at one time.
 */
export function readTogether(graph: Graph): Graph {
  let current = { graph, parts: partsOf(graph) };
  for (let first = 0; first < current.graph.calls.length; first++) {
    const end = Math.min(current.graph.calls.length, first + farthest);
    for (let second = first + 1; second < end; second++) {
      const together = fusedAt(current.graph, first, second);
      if (!together) continue;
      const next = { graph: together, parts: partsOf(together) };
      if (bytesWithin(next.parts, first, second - 1) > bytesWithin(current.parts, first, second)) continue;
      current = next;
      break;
    }
  }
  return current.graph;
}

/** The graph with the calls of two places as one, where that is possible; null elsewhere. */
function fusedAt(graph: Graph, first: number, second: number): Graph | null {
  const { calls } = graph;
  const [a, b] = [calls[first]!, calls[second]!];
  if (!readsAllOf(b, a)) return null;
  const between = dividedBy(a, calls.slice(first + 1, second));
  if (!between || !between.waiting.every((call) => areIndependent(call, b))) return null;
  const kept = new Set([...a.outputs, ...b.outputs].map(({ storage }) => storage));
  const [fused, ...others] = fusePointwise({ ...graph, calls: [a, b], kept }).calls;
  if (others.length > 0) return null;
  const window = [...between.passing, fused!, ...between.waiting];
  return { ...graph, calls: calls.toSpliced(first, second - first + 1, ...window) };
}

/** Whether one element-wise call reads all that another one reads, of which some is as large as what that makes. */
function readsAllOf(later: Call, earlier: Call): boolean {
  if (later.op.cuda.kind !== 'pointwise' || earlier.op.cuda.kind !== 'pointwise') return false;
  const [inputs, read] = [later, earlier].map((call) => placesRead(call).map((i) => call.inputs[i]!));
  return (
    // Anything smaller is read from the cache.
    read!.some((input) => input.size === earlier.outputs[0]?.size) &&
    read!.every((input) => inputs!.some((other) => isSameOperand(input, other)))
  );
}

/**
 * Calls after one: those that wait for it, or for one that does, and those that can pass all of them. Null where what they do
 * has effects, which are neither put off nor moved ahead.
 */
function dividedBy(
  first: Call,
  calls: readonly Call[],
): { readonly waiting: readonly Call[]; readonly passing: readonly Call[] } | null {
  const waiting: Call[] = [];
  const passing: Call[] = [];
  for (const call of calls) {
    if (hasEffects(call)) return null;
    const waits = [first, ...waiting].some((other) => !areIndependent(call, other));
    (waits ? waiting : passing).push(call);
  }
  return { waiting, passing };
}

/** The most bytes that are needed at one time from the call of one place to that of another. */
function bytesWithin(parts: readonly ArenaPart[], from: number, to: number): number {
  const within = parts.map((part) => ({
    ...part,
    first: Math.max(part.first, from),
    last: Math.min(part.last, to),
  }));
  return fullestCall(within.filter(({ first, last }) => first <= last)).bytes;
}
