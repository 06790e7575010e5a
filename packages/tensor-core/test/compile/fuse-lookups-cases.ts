import { beforeAll, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { DType, Device, Tensor } from '../../src/index.ts';
import { fuseProloguesAndEpilogues } from '../../src/compile/passes/fuse-prologues-epilogues.ts';
import { fusePointwise } from '../../src/compile/passes/fuse-pointwise.ts';
import { expectSameBits, opNames, graphOf } from './traced-graph.ts';

/** Norms of rows of a table by one kernel, compared bit by bit to those by two, on `open`'s device. */
export function describeLookups(open: () => Device): void {
  const random = (shape: readonly number[], seed: number, dtype: DType = 'float32') =>
    t.cast(t.randn(shape, { device: open(), generator: new t.Generator(seed) }), dtype);
  const ids = (values: number[], dtype: 'int32' | 'int64' = 'int64') =>
    t.reshape(t.tensor(values, { device: open(), dtype }), [1, values.length]);
  const make = () => ({
    one: random([], 3),
    weight: random([24], 5),
    bias: random([24], 6),
    table: random([9, 24], 11),
    wide: ids([8, 0, 3, 3, 0, 7, 2]),
    outside: ids([8, 9, -1, 0]),
    narrow: ids([1, 1, 5], 'int32'),
    shifted: t.slice(random([217], 17), 0, 1),
    square: random([64, 24], 18),
    reversed: t.view(ids(Array.from({ length: 64 }, (_, i) => 63 - i)), [64]),
  });
  let at: ReturnType<typeof make>;
  beforeAll(() => void (at = make()));
  const fused = (fn: () => readonly Tensor[]) => {
    const traced = graphOf(fn);
    const changed = fuseProloguesAndEpilogues(fusePointwise(traced.graph));
    expectSameBits(traced, changed);
    return changed;
  };

  it('are read by the norm, which writes them where another call needs them', () => {
    const graph = fused(() => {
      const x = t.embedding(at.table, at.wide);
      return [t.rmsNorm(x, at.weight, 1e-5, { dtype: 'bfloat16' }), t.neg(x)];
    });
    expect(opNames(graph)).toEqual(['fused_embedding_rmsNorm', 'neg']);
    const alone = fused(() => [
      t.add(t.layerNorm(t.embedding(at.table, at.narrow), at.weight, at.bias), at.one),
    ]);
    expect(opNames(alone)).toEqual(['fused_embedding_layerNorm_add']);
    expect(alone.calls[0]!.outputs).toHaveLength(3);
  });

  it('are NaN where there is no such row', () => {
    const graph = fused(() => {
      const x = t.embedding(at.table, at.outside);
      return [t.rmsNorm(x, at.weight), t.copy(x)];
    });
    expect(opNames(graph)).toEqual(['fused_embedding_rmsNorm', 'copy']);
  });

  it.each(['float16', 'bfloat16', 'float64'] as const)('in %s', (dtype) => {
    const [low, scale] = [random([9, 24], 12, dtype), random([24], 13, dtype)];
    expect(opNames(fused(() => [t.rmsNorm(t.embedding(low, at.wide), scale)]))).toEqual([
      'fused_embedding_rmsNorm',
    ]);
  });

  it('of odd lengths, and of a part of a larger table', () => {
    const [odd, scale] = [random([5, 7], 14), random([7], 15)];
    expect(opNames(fused(() => [t.rmsNorm(t.embedding(odd, at.narrow), scale)]))).toContain(
      'fused_embedding_rmsNorm',
    );
    const part = t.slice(random([18, 24], 16), 0, 2, 11);
    expect(opNames(fused(() => [t.rmsNorm(t.embedding(part, at.wide), at.weight)]))).toEqual([
      'fused_embedding_rmsNorm',
    ]);
  });

  it('without the reader of the norm where that writes the table, whose rows are still to be looked up', () => {
    const graph = fused(() => {
      const table = t.softmax(at.square, -1);
      const y = t.rmsNorm(t.embedding(table, at.reversed), at.weight);
      t.addInPlace(table, y);
      return [table];
    });
    expect(opNames(graph)).toEqual(['softmax', 'fused_embedding_rmsNorm', 'add_']);
  });

  it.each<[string, () => Tensor[]]>([
    [
      'a table that is written before the norm',
      () => {
        const own = t.mul(at.table, 2);
        const x = t.embedding(own, at.wide);
        t.fillInPlace(own, 0.5);
        // It reads what has been written, and so comes after the write.
        return [t.rmsNorm(x, t.select(own, 0, 0))];
      },
    ],
    [
      'ids that are written before the norm',
      () => {
        const own = t.add(at.wide, 0);
        const x = t.embedding(at.table, own);
        t.fillInPlace(own, 1);
        const row = t.embedding(at.table, t.slice(own, 1, 0, 1));
        return [t.rmsNorm(x, t.reshape(row, [24]))];
      },
    ],
    [
      'another layout',
      () => [t.rmsNorm(t.reshape(t.embedding(at.table, at.wide), [14, 12]), t.slice(at.weight, 0, 0, 12))],
    ],
    [
      'rows one of which is the weight',
      () => {
        const x = t.embedding(at.table, at.wide);
        return [t.rmsNorm(x, t.select(t.select(x, 0, 0), 0, 1))];
      },
    ],
    [
      'a table that does not begin where vectors do',
      () => [t.rmsNorm(t.embedding(t.view(at.shifted, [9, 24]), at.wide), at.weight)],
    ],
  ])('not of %s', (_, fn) => {
    expect(opNames(fused(fn))).toContain('embedding');
  });
}
