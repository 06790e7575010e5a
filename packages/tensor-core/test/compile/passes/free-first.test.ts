import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Op, type Tensor, add, noGrad, ones, scope, sum } from '../../../src/index.ts';
import { partsOf } from '../../../src/compile/cuda/arena.ts';
import { fullestCall } from '../../../src/compile/cuda/arena-plan.ts';
import { freeFirst } from '../../../src/compile/passes/free-first.ts';
import { areIndependent } from '../../../src/compile/passes/operands.ts';
import type { Call, Operand, Graph } from '../../../src/compile/graph/graph.ts';
import { expectSameBits, opNames, graphOf } from '../traced-graph.ts';
import { lowProduct } from '../lowered-ops.ts';

/** An op that writes no result where it reads an input. */
const apart: Op<undefined> = { ...lowProduct, cuda: { kind: 'custom', launch: () => {} } };

/** The most bytes that a graph's calls need at one time. */
const bytesNeeded = (graph: Graph) => fullestCall(partsOf(graph)).bytes;

describe('freeFirst', () => {
  it('puts the last reader of a large tensor before what makes a large result, with the same bits', () => {
    const x = ones([4096]);
    const traced = graphOf(() =>
      noGrad(() => {
        const copy = add(x, x);
        const result = add(x, copy);
        const again = add(x, x);
        return [result, again, sum(copy)] as Tensor[];
      }),
    );
    expect(opNames(traced.graph)).toEqual(['add', 'add', 'add', 'sum']);
    const changed = freeFirst(traced.graph);
    // The first result reads the copy, too: only the second can wait without keeping it.
    expect(changed.calls.map((call) => traced.graph.calls.indexOf(call))).toEqual([0, 1, 3, 2]);
    expect(bytesNeeded(changed)).toBeLessThan(bytesNeeded(traced.graph));
    expectSameBits(traced, changed);
  });

  it('leaves calls in their order where one reads or writes what the other writes', () => {
    const x = ones([4096]);
    const traced = graphOf(() =>
      scope(() =>
        noGrad(() => {
          const y = add(x, x);
          return [sum(add(y, y))];
        }),
      ),
    );
    expect(freeFirst(traced.graph).calls).toEqual(traced.graph.calls);
  });

  const storageCount = 8;
  const number = fc.integer({ min: 0, max: storageCount - 1 });
  const randomCalls = fc.array(
    fc.record({
      inputs: fc.array(number, { maxLength: 3 }),
      outputs: fc.array(number, { minLength: 1, maxLength: 2 }),
    }),
    { maxLength: 14 },
  );
  const sizes = fc.array(fc.integer({ min: 0, max: 5 }), {
    minLength: storageCount,
    maxLength: storageCount,
  });

  it('never needs more memory, nor swaps calls that depend on each other', () => {
    fc.assert(
      fc.property(randomCalls, sizes, fc.uniqueArray(number), (picked, blocks, kept) => {
        const operand = (storage: number): Operand => ({
          ...{ storage, dtype: 'float32', shape: [blocks[storage]! * 128], strides: [1], offset: 0 },
          ...{ size: blocks[storage]! * 128, byteLength: blocks[storage]! * 512, isContiguous: true },
        });
        // What has not been written yet is not read.
        const written = new Set<number>();
        const calls = picked.map(({ inputs, outputs }): Call => {
          const read = inputs.filter((storage) => written.has(storage)).map(operand);
          for (const storage of outputs) written.add(storage);
          return {
            ...{ op: apart as Op<never>, attributes: undefined, live: null, range: null },
            ...{ inputs: read, outputs: outputs.map(operand) },
          };
        });
        const storages = blocks.map((count) => ({
          ...{ byteLength: count * 512, dtype: 'float32' as const, source: { kind: 'made' as const } },
        }));
        const graph = { calls, storages, kept: new Set(kept) } as unknown as Graph;
        const changed = freeFirst(graph);
        expect(new Set(changed.calls)).toEqual(new Set(calls));
        expect(changed.calls).toHaveLength(calls.length);
        expect(bytesNeeded(changed)).toBeLessThanOrEqual(bytesNeeded(graph));
        const places = calls.map((call) => changed.calls.indexOf(call));
        for (const [i, a] of calls.entries())
          for (const [j, b] of calls.entries())
            if (i < j && !areIndependent(a, b)) expect(places[i]).toBeLessThan(places[j]!);
      }),
      { numRuns: 500 },
    );
  });
});
