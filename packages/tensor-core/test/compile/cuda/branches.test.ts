import { describe, expect, it } from 'vitest';
import { partsOf } from '../../../src/compile/cuda/arena.ts';
import { besideShortCalls, multiprocessorsBeside } from '../../../src/compile/cuda/branch-rules.ts';
import {
  type BranchRule,
  branchesOf,
  mayOverlap,
  oneChain,
  spanOf,
} from '../../../src/compile/cuda/branches.ts';
import { takenOver } from '../../../src/compile/cuda/in-place.ts';
import { scheduleGraph } from '../../../src/compile/cuda/schedule.ts';
import {
  type Tensor,
  addInPlace,
  apply,
  copyInPlace,
  defineOp,
  exp,
  full,
  keep,
  matmul,
  mul,
  noGrad,
  slice,
  sum,
} from '../../../src/index.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { graphOf } from '../traced-graph.ts';

const all: BranchRule = { fewest: 1, most: Infinity, isWorthIt: () => true };

describe('branchesOf', () => {
  const device = openPlanningDevice();
  const x = keep(full([8, 8], 1, { device }));
  /** Calls each of which needs the one before it; passes, which would fuse them, have not run. */
  const chain = (y: Tensor, length: number) => Array.from({ length }).reduce<Tensor>((z) => exp(z), y);
  const branches = (fn: () => readonly Tensor[], rule: Partial<BranchRule> = {}) => [
    ...branchesOf(graphOf(() => noGrad(fn)).graph.calls, { ...all, ...rule }),
  ];

  it('are of calls that nothing waits for over others, up to the call that does', () => {
    // exp of x, which the last call reads; two calls beside it.
    expect(
      branches(() => {
        const early = exp(x);
        return [mul(chain(x, 2), early)];
      }),
    ).toEqual([[0, 3]]);
    expect(branches(() => [exp(x), chain(x, 2)])).toEqual([[0, 3]]);
  });

  it('wait for whatever does not keep its order with what is read and written', () => {
    expect(branches(() => [chain(x, 4)])).toEqual([]);
    const written = () => keep(full([8, 8], 1, { device }));
    const [a, b, c] = [written(), written(), written()];
    const between = () => [chain(x, 2)];
    // A write before a read, a read before a write, and two writes.
    const pairs: (() => Tensor[])[] = [
      () => (copyInPlace(a, x), [...between(), exp(a)]),
      () => [exp(b), ...between(), (addInPlace(b, x), x)].slice(0, 2),
      () => (copyInPlace(c, x), [...between(), (copyInPlace(c, x), x)].slice(0, 1)),
    ];
    for (const pair of pairs) expect(branches(pair, { fewest: 2 })).toEqual([[0, 3]]);
    expect(branches(() => [exp(x), ...between(), exp(x)], { fewest: 2 })).toEqual([[0, 4]]);
  });

  it('follow each other where only those of branches wait', () => {
    const y = keep(full([8, 8], 1, { device }));
    expect(branches(() => (copyInPlace(y, x), [exp(y), chain(x, 1)]))).toEqual([[0, 3], [1, 3]]); // prettier-ignore
  });

  it('may write one part of a storage while others write another', () => {
    const y = keep(full([2, 8], 1, { device }));
    const [upper, lower] = [0, 1].map((row) => slice(y, 0, row, row + 1));
    const row = keep(full([1, 8], 1, { device }));
    expect(branches(() => (copyInPlace(upper!, row), copyInPlace(lower!, row), []))).toEqual([[0, 2]]);
  });

  it('follow the rule: the fewest calls beside, the most before somebody waits, and whether it is worth it', () => {
    const fn = () => [exp(x), chain(x, 6)];
    expect(branches(fn, { fewest: 6 })).toEqual([[0, 7]]);
    expect(branches(fn, { fewest: 7 })).toEqual([]);
    expect(branches(fn, { most: 2 })).toEqual([[0, 3]]);
    const seen: number[] = [];
    expect(branches(fn, { isWorthIt: (_, beside) => (seen.push(beside.length), false) })).toEqual([]);
    // The places from the last on; the chain waits at each.
    expect(seen).toEqual([6]);
  });

  it('are waited for in their order: who waits for a later one has waited for an earlier one', () => {
    // Nothing waits for the first; the last call waits for the second.
    const joins = branches(() => {
      const [first, second] = [exp(x), exp(x)];
      return [first, mul(chain(x, 2), second)];
    });
    expect(joins).toEqual([[0, 4], [1, 4]]); // prettier-ignore
  });

  it('leave calls without a result in the chain: they check something', () => {
    const check = defineOp<null>({
      name: 'check',
      autocast: 'none',
      infer: () => [],
      cuda: { kind: 'custom', launch: () => {} },
      cpu: { kind: 'host', run: () => {} },
    });
    expect(branches(() => (apply(check, [x], null), [chain(x, 3)]))).toEqual([]);
  });
});

describe('what may run at the same time', () => {
  const branches = new Map([[1, 4], [2, 6]]); // prettier-ignore

  it('is a call of a branch with those of the chain up to the one that waits', () => {
    expect([0, 1, 2, 3].map((place) => spanOf(branches, place))).toEqual([
      { first: 0, last: 0 },
      { first: 1, last: 3 },
      { first: 2, last: 5 },
      { first: 3, last: 3 },
    ]);
    const beside = (a: number, b: number) => mayOverlap(branches, a, b);
    expect([beside(1, 3), beside(3, 1), beside(1, 4), beside(0, 1)]).toEqual([true, true, false, false]);
    // Calls of a branch follow each other.
    expect([beside(1, 2), beside(2, 4), beside(3, 4)]).toEqual([false, true, false]);
    expect(mayOverlap(oneChain, 0, 1)).toBe(false);
  });

  it('never shares memory, nor takes it over', () => {
    const device = openPlanningDevice();
    const x = keep(full([8, 8], 1, { device }));
    const { graph } = graphOf(() =>
      noGrad(() => {
        const made = mul(x, 2);
        // Reads it on a branch, while the chain's last reader could write over it.
        const beside = sum(made);
        return [beside, exp(exp(made))];
      }),
    );
    const made = graph.calls[0]!.outputs[0]!.storage;
    const over = graph.calls[2]!.outputs[0]!.storage;
    expect(takenOver(graph).get(over)).toBe(made);
    const joined = new Map([[1, 4]]);
    expect(takenOver(graph, joined).get(over)).toBeUndefined();
    const part = partsOf(graph, joined).find(({ numbers }) => numbers.includes(made))!;
    expect(part).toMatchObject({ numbers: [made], first: 0, last: 3 });
    expect(partsOf(graph).find(({ numbers }) => numbers.includes(made))).toMatchObject({ first: 0, last: 4 });
  });
});

describe('besideShortCalls', () => {
  const { isWorthIt, fewest } = besideShortCalls({ multiprocessors: 2 });
  const device = openPlanningDevice();
  const calls = (sizes: readonly number[]) =>
    graphOf(() => noGrad(() => sizes.map((size) => exp(full([size], 1, { device }))))).graph.calls.filter(
      ({ op }) => op.name === 'exp',
    );
  // Bytes moved are 8 an element: 1.2e5 of two multiprocessors are brief, 1.2e6 are long.
  const [tiny, brief, long] = [10_000, 20_000, 200_000];
  const judge = (size: number, beside: readonly number[]) => {
    const [call, ...others] = calls([size, ...beside]);
    return isWorthIt(call!, others);
  };

  it('lets what is worth its events run beside calls of which few are long', () => {
    expect(judge(brief, Array<number>(fewest).fill(tiny))).toBe(true);
    expect(judge(tiny, Array<number>(fewest).fill(tiny))).toBe(false);
    expect(judge(long, [tiny, tiny, tiny, long])).toBe(true);
    expect(judge(long, [tiny, tiny, long])).toBe(false);
  });

  it('counts products by their floating-point operations, also where their bytes are few', () => {
    const product = (n: number) => {
      const a = full([n, n], 1, { device, dtype: 'bfloat16' });
      return graphOf(() => noGrad(() => [matmul(a, a)])).graph.calls[0]!;
    };
    // 2 n³ operations and 6 n² bytes, where 1.3e9 and 7.9e6 of an H200 are brief.
    const rule = besideShortCalls({ multiprocessors: 132 });
    expect(rule.isWorthIt(product(1024), calls([tiny]))).toBe(true);
    expect(rule.isWorthIt(product(768), calls([tiny]))).toBe(false);
  });

  it('leaves half of the multiprocessors to others, as long as there are several', () => {
    expect([132, 3, 1].map((multiprocessors) => multiprocessorsBeside({ multiprocessors }))).toEqual([
      66, 1, 1,
    ]);
  });
});

describe('scheduleGraph', () => {
  const device = openPlanningDevice();

  it('lets calls run beside others only where that takes no more memory', () => {
    const w = keep(full([2048, 2048], 1, { device, dtype: 'bfloat16' }));
    const short = (y: Tensor) => [1, 2, 3, 4, 5, 6].reduce((z) => matmul(z, w), y);
    const row = keep(full([8, 2048], 1, { device, dtype: 'bfloat16' }));
    const graphWith = (result: (y: Tensor) => Tensor) => {
      const { graph } = graphOf(() =>
        noGrad(() => {
          const large = matmul(w, w);
          return [result(large), short(row)];
        }),
      );
      return graph;
    };
    const scheduled = (graph: ReturnType<typeof graphWith>, choice?: 'always' | 'never') =>
      scheduleGraph(graph, device.facts, choice === undefined ? {} : { branches: choice });
    const graph = graphWith((y) => sum(y));
    const [chain, beside] = [scheduled(graph, 'never'), scheduled(graph)];
    expect(chain.branches.size).toBe(0);
    expect(beside.branches.size).toBeGreaterThan(0);
    expect(beside.arena.byteLength).toBeLessThanOrEqual(chain.arena.byteLength + 2 ** 21);
    expect(scheduled(graph, 'always').branches.size).toBeGreaterThanOrEqual(beside.branches.size);
    // It is w and the row.
    const given = (2048 + 8) * 2048 * 2;
    expect(beside.arena.byteLength).toBeGreaterThan(chain.arena.byteLength);
    const memoryBudget = given + chain.arena.byteLength;
    expect(scheduleGraph(graph, device.facts, { memoryBudget }).arena.byteLength).toBe(
      chain.arena.byteLength,
    );
  });
});
