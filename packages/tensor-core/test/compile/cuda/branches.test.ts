import { hostCompilerVersion } from '@roofline/cuda/testing';
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
  applyLive,
  compile,
  copyInPlace,
  defineOp,
  exp,
  full,
  keep,
  matmul,
  mul,
  noGrad,
  randn,
  slice,
  sum,
  transpose,
} from '../../../src/index.ts';
import { cudaDevice } from '../../../src/kernel-api.ts';
import { openEmulatedDevice, openPlanningDevice } from '../../../src/testing.ts';
import { halveKernel } from '../lowered-ops.ts';
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
      scheduleGraph(graph, device.facts, choice);
    const graph = graphWith((y) => sum(y));
    const [chain, beside] = [scheduled(graph, 'never'), scheduled(graph)];
    expect(chain.branches.size).toBe(0);
    expect(beside.branches.size).toBeGreaterThan(0);
    expect(beside.arena.byteLength).toBeLessThanOrEqual(chain.arena.byteLength + 2 ** 21);
    expect(scheduled(graph, 'always').branches.size).toBeGreaterThanOrEqual(beside.branches.size);
  });
});

/** Doubles its input in memory of the call's own, which others may not write meanwhile. */
const doubledOp = defineOp<null>({
  name: 'doubled',
  autocast: 'none',
  infer: ([x]) => [x!],
  variant: () => '',
  cuda: {
    kind: 'custom',
    launch(context, [x], [y]) {
      const gpu = cudaDevice(context);
      const [workspace, scratch] = [context.workspace(x!.byteLength), gpu.scratch('doubled', x!.byteLength)];
      gpu.stream.copy(workspace, x!.address, x!.byteLength);
      gpu.stream.copy(scratch, workspace, x!.byteLength);
      context.fillBytes(workspace, 0xff, x!.byteLength);
      gpu.stream.copy(y!.address, scratch, x!.byteLength);
    },
  },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
});
const through = (x: Tensor) => apply(doubledOp, [x], null)[0]!;

describe.skipIf(hostCompilerVersion() === null)('a compiled program with branches (needs g++)', () => {
  const device = openEmulatedDevice();
  const w = randn([16, 16], { seed: 1, device });
  const tall = mul(randn([512, 16], { seed: 2, device }), 0.1);
  const numbers = (results: readonly Tensor[]) => results.map((x) => [...x.toTypedArray()].map(Number));

  /** Long results of the first layers beside a chain of the others, with workspaces, scratch and in-place writes on both. */
  const layers = (state: Tensor) => (x: Tensor) => {
    const aside: Tensor[] = [];
    // What it leaves in the arena has room for workspaces.
    const large = exp(matmul(tall, x));
    let y = mul(matmul(transpose(large), large), 1 / 512);
    for (let i = 0; i < 5; i++) {
      aside.push(sum(through(matmul(y, y)), { dims: [0] }));
      addInPlace(slice(state, 0, i, i + 1), slice(y, 0, 0, 1));
      y = through(matmul(mul(y, 0.25), w));
    }
    return [...aside, y];
  };

  it('gives the bits of eager code in every order that its events allow, from any stream', () => {
    noGrad(() => {
      const [eagerState, state] = [full([5, 16], 0, { device }), full([5, 16], 0, { device })];
      const eager = layers(eagerState);
      const compiled = compile(layers(state), { branches: 'always' });
      const other = device.createStream();
      for (let call = 0; call < 24; call++) {
        const x = randn([16, 16], { seed: 10 + call, device });
        const expected = numbers(eager(x));
        // Two in a row on each stream, so that captures of both replay.
        const run = () => numbers(compiled(x));
        expect(call % 4 < 2 ? run() : device.onStream(other, run)).toEqual(expected);
        expect(numbers([state])).toEqual(numbers([eagerState]));
      }
      const [{ table, callsBeside }] = compiled.explain() as [ReturnType<typeof compiled.explain>[number]];
      const beside = table.filter(({ waitedForBy }) => waitedForBy !== null);
      expect(beside.length).toBeGreaterThan(4);
      expect(callsBeside).toBe(beside.length);
      for (const [at, { waitedForBy }] of table.entries()) {
        if (waitedForBy === null) continue;
        expect(waitedForBy).toBeGreaterThan(at + 1);
        expect(table[waitedForBy]?.waitedForBy ?? null).toBeNull();
      }
      compiled.dispose();
    });
  });

  it('does not share the memory of kernels with another one that runs at the same time on another stream', () => {
    noGrad(() => {
      const other = device.createStream();
      const states = [0, 1].map(() => full([5, 16], 0, { device }));
      const programs = states.map((state) => compile(layers(state), { branches: 'always' }));
      const inputs = [3, 4].map((seed) => randn([16, 16], { seed, device }));
      const expected = inputs.map((x) => numbers(layers(full([5, 16], 0, { device }))(x)));
      device.synchronize();
      for (let call = 0; call < 8; call++) {
        const first = programs[0]!(inputs[0]!);
        const second = device.onStream(other, () => programs[1]!(inputs[1]!));
        other.synchronize();
        expect([numbers(first), device.onStream(other, () => numbers(second))]).toEqual(expected);
      }
      for (const program of programs) program.dispose();
    });
  });

  it('is one chain by itself where it is small, or by request, and refuses what is no choice', () => {
    const beside = (branches?: 'auto' | 'never') => {
      const compiled = compile((x: Tensor) => [exp(x), matmul(matmul(matmul(x, x), x), x)], { branches });
      for (let i = 0; i < 2; i++) compiled(w);
      return compiled.explain()[0]!.callsBeside;
    };
    expect([beside(), beside('auto'), beside('never')]).toEqual([0, 0, 0]);
    expect(() => compile((x: Tensor) => x, { branches: 'some' as never })).toThrow(
      /compile: branches must be one of auto, always, never, not the text "some"/,
    );
  });

  it('lets kernels stay on half of the multiprocessors, also where their attributes are new in each run', () => {
    const told: [string, number][] = [];
    const asked = defineOp<{ readonly factor: number }>({
      name: 'asked',
      autocast: 'none',
      infer: ([x]) => [x!],
      variant: () => '',
      cuda: {
        kind: 'custom',
        launch(context, [x], [y], { factor }) {
          told.push([`factor ${factor}`, context.multiprocessors]);
          context.kernel(halveKernel).launch([1, 1, 1], 32, 0, [y!.address, 0, x!.size]);
        },
      },
      cpu: { kind: 'host', run: () => {} },
    });
    noGrad(() => {
      let factor = 0;
      const compiled = compile(
        (x: Tensor) => {
          const [beside] = applyLive(asked, [exp(x)], () => ({ factor: ++factor }));
          return [beside!, matmul(matmul(matmul(x, w), w), w)];
        },
        { branches: 'always' },
      );
      for (let call = 0; call < 3; call++) compiled(w);
      compiled.dispose();
    });
    const { multiprocessors } = device.facts;
    expect(told[0]).toEqual(['factor 1', multiprocessors]);
    expect(new Set(told.slice(1).map(([, count]) => count))).toEqual(new Set([multiprocessors / 2]));
    expect(told.at(-1)![0]).toBe('factor 3');
  });

  it('waits for the only call of a branch before its one reader', () => {
    noGrad(() => {
      const table = randn([64, 16], { seed: 5, device });
      const fn = (x: Tensor) => {
        const beside = matmul(transpose(table), table);
        return [matmul(matmul(matmul(x, w), w), beside)];
      };
      const compiled = compile(fn, { branches: 'always' });
      for (let call = 0; call < 12; call++) {
        const x = randn([16, 16], { seed: call, device });
        expect(numbers(compiled(x))).toEqual(numbers(fn(x)));
      }
      expect(compiled.explain()[0]!.callsBeside).toBe(1);
      compiled.dispose();
    });
  });

  it('reads what the host wrote between runs, with its handles dropped and memory poisoned', () => {
    noGrad(() => {
      const table = full([4, 16], 1, { device });
      const compiled = compile(
        (x: Tensor) => [sum(mul(table, 3)), matmul(matmul(matmul(x, w), w), w), sum(exp(mul(x, 0.1)))],
        { branches: 'always' },
      );
      for (let call = 0; call < 6; call++) {
        copyInPlace(table, full([4, 16], call, { device }));
        const x = randn([16, 16], { seed: call, device });
        const results = compiled(x);
        x.dispose();
        expect(results[0]!.item()).toBe(192 * call);
        for (const result of results) result.dispose();
      }
      compiled.dispose();
    });
  });
});
