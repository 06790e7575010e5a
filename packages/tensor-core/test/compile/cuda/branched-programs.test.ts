import { hostCompilerVersion } from '@roofline/cuda/testing';
import { describe, expect, it } from 'vitest';
import {
  type Tensor,
  addInPlace,
  applyLive,
  compile,
  copyInPlace,
  defineOp,
  exp,
  full,
  matmul,
  mul,
  noGrad,
  randn,
  slice,
  sum,
  transpose,
} from '../../../src/index.ts';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { halveKernel, throughScratch } from '../lowered-ops.ts';

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
      aside.push(sum(throughScratch(matmul(y, y)), { dims: [0] }));
      addInPlace(slice(state, 0, i, i + 1), slice(y, 0, 0, 1));
      y = throughScratch(matmul(mul(y, 0.25), w));
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
