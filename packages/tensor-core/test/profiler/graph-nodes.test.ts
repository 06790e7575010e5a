import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callsOfActivities } from '../../src/profiler/graph-nodes.ts';
import type { NodeShape } from '../../src/program/replay.ts';

const shape = (kind: number): NodeShape =>
  kind === 0
    ? { kind: 'memset', grid: null, block: null }
    : { kind: 'kernel', grid: [kind, 1, 1], block: [32, 1, 1] };

/** Calls with their branch, the earlier calls that they run behind, and the kinds of their nodes. */
interface Drawn {
  readonly branch: number;
  readonly behind: readonly number[];
  readonly kinds: readonly number[];
}

function graphOf(calls: readonly Drawn[]) {
  return {
    nodes: calls.map(({ kinds }) => kinds.length),
    branches: {
      ofCalls: calls.map(({ branch }) => branch),
      dependencies: calls.map(({ behind }, i) => new Set(behind.filter((earlier) => earlier < i))),
      shapes: calls.flatMap(({ kinds }) => kinds.map(shape)),
    },
  };
}

/** The calls of the nodes in an order in which they may begin, by draws. */
function drawnOrder(calls: readonly Drawn[], draws: readonly number[]): number[] {
  const left = calls.map(({ kinds }) => kinds.length);
  // An event of a branch is behind all that the branch has been given.
  const isBehind = ({ branch, behind }: Drawn, i: number, j: number) =>
    calls[j]!.branch === branch ||
    behind.some((earlier) => earlier < i && earlier >= j && calls[earlier]!.branch === calls[j]!.branch);
  const isReady = (call: Drawn, i: number) =>
    left[i]! > 0 && left.slice(0, i).every((count, j) => count === 0 || !isBehind(call, i, j));
  const order: number[] = [];
  for (let at = 0; ; at++) {
    const ready = calls.flatMap((call, i) => (isReady(call, i) ? [i] : []));
    if (ready.length === 0) return order;
    const call = ready[draws[at % draws.length]! % ready.length]!;
    left[call]!--;
    order.push(call);
  }
}

const anyCall = (kinds: fc.Arbitrary<number>) =>
  fc.record({
    branch: fc.nat(2),
    behind: fc.array(fc.nat(12), { maxLength: 3 }),
    kinds: fc.array(kinds, { maxLength: 3 }),
  });
const draws = fc.array(fc.nat(5), { minLength: 1, maxLength: 40 });

describe('callsOfActivities', () => {
  /** What began where, by its shape and its call. */
  const began = (calls: readonly Drawn[], order: readonly number[]) => {
    const next = calls.map(() => 0);
    return order.map((call) => shape(calls[call]!.kinds[next[call]!++]!));
  };

  it('finds the order where no two nodes are alike', () => {
    const unlike = fc
      .array(anyCall(fc.constant(0)), { maxLength: 14 })
      .map((calls) => calls.map((call, i) => ({ ...call, kinds: call.kinds.map((_, j) => 1 + 3 * i + j) })));
    fc.assert(
      fc.property(unlike, draws, (calls, drawn) => {
        const order = drawnOrder(calls, drawn);
        expect(callsOfActivities(graphOf(calls), began(calls, order))).toEqual(order);
      }),
    );
  });

  it('finds one that the graph allows, of the same shapes, where many are alike', () => {
    fc.assert(
      fc.property(fc.array(anyCall(fc.nat(2)), { maxLength: 14 }), draws, (calls, drawn) => {
        const order = drawnOrder(calls, drawn);
        const activities = began(calls, order);
        const found = callsOfActivities(graphOf(calls), activities)!;
        expect(began(calls, found)).toEqual(activities);
        const place = (call: number, which: 'first' | 'last') =>
          which === 'first' ? found.indexOf(call) : found.lastIndexOf(call);
        calls.forEach(({ branch, behind }, i) => {
          if (!found.includes(i)) return;
          for (let j = 0; j < i; j++)
            if (calls[j]!.branch === branch || behind.includes(j))
              expect(place(j, 'last')).toBeLessThan(place(i, 'first'));
        });
      }),
    );
  });

  it('finds none where kernels began as the graph cannot have them', () => {
    const calls = [
      { branch: 0, behind: [], kinds: [1] },
      { branch: 1, behind: [0], kinds: [2] },
    ];
    expect(callsOfActivities(graphOf(calls), [shape(2), shape(1)])).toBeNull();
    expect(callsOfActivities(graphOf(calls), [shape(1), shape(3)])).toBeNull();
    expect(callsOfActivities(graphOf(calls), [shape(1), shape(2)])).toEqual([0, 1]);
  });

  it('takes a chain in its order, whatever the shapes', () => {
    expect(callsOfActivities({ nodes: [2, 0, 1], branches: null }, [])).toEqual([0, 0, 2]);
  });
});
