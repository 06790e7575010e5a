import { describe, expect, it } from 'vitest';
import { accumulateEmbeddings } from '../../../src/compile/passes/accumulate-embeddings.ts';
import { finishTogether } from '../../../src/compile/passes/finish-together.ts';
import { foldCopies } from '../../../src/compile/passes/fold-copies.ts';
import { fuseProloguesAndEpilogues } from '../../../src/compile/passes/fuse-prologues-epilogues.ts';
import { pairCalls } from '../../../src/compile/passes/pair-calls.ts';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { namesAfter } from './names-after.ts';

// What random programs do not meet: one condition of a pass that decides.
describe('passes that fuse, where one condition decides', () => {
  const device = openPlanningDevice();
  const tensor = (shape: readonly number[], dtype: DType = 'float32') => t.zeros(shape, { device, dtype });
  const names = (pass: (graph: Graph) => Graph, fn: () => readonly Tensor[]) => namesAfter(device, pass, fn);
  const idle = tensor([1]);

  describe('pairCalls', () => {
    const [x, y, angles] = [tensor([2, 4, 8]), tensor([2, 4, 8]), tensor([4, 4])];
    const turn = (z: Tensor) => t.rope(z, angles, angles);
    const turns = (fn: () => readonly Tensor[]) =>
      names(pairCalls, fn).filter((name) => name === 'rope').length;
    it.each<[string, number, () => readonly Tensor[]]>([
      ['pairs rotations', 0, () => [turn(x), turn(y)]],
      ['not one with that of its result', 2, () => [turn(turn(x))]],
      [
        'not far apart',
        2,
        () => {
          const first = turn(x);
          const others = Array.from({ length: 12 }, () => t.neg(idle));
          return [first, turn(y), ...others];
        },
      ],
      [
        'not where one waits for the first and the second for one',
        2,
        () => {
          const first = turn(x);
          const reader = t.neg(first);
          const made = t.neg(y);
          return [reader, turn(made)];
        },
      ],
      ['not of two shapes', 2, () => [turn(x), turn(tensor([3, 4, 8]))]],
      ['not of two dtypes', 2, () => [turn(x), turn(tensor([2, 4, 8], 'bfloat16'))]],
    ])('%s', (_, expected, fn) => {
      expect(turns(fn)).toBe(expected);
    });
  });

  describe('fuseProloguesAndEpilogues', () => {
    const [table, weight, ids] = [tensor([6, 8]), tensor([8]), tensor([8], 'int64')];
    const [long, longer] = [8192, 8200].map(
      (columns) => [tensor([1, columns]), tensor([columns])] as const,
    ) as [readonly [Tensor, Tensor], readonly [Tensor, Tensor]];
    it.each<[string, string[], () => readonly Tensor[]]>([
      [
        'looks rows of float64 up',
        ['fused_embedding_rmsNorm'],
        () => [t.rmsNorm(t.embedding(tensor([6, 8], 'float64'), ids), tensor([8], 'float64'))],
      ],
      [
        'not in a table that begins between vectors',
        ['embedding', 'rmsNorm'],
        () => [t.rmsNorm(t.embedding(t.view(t.slice(tensor([49]), 0, 1), [6, 8]), ids), weight)],
      ],
      [
        'not what is added to several rows',
        ['mul', 'rmsNorm'],
        () => [t.rmsNorm(t.mul(tensor([2, 4, 8]), tensor([4, 8])), weight)],
      ],
      [
        'takes what was added in place',
        ['softmax', 'fused_add__rmsNorm'],
        () => {
          const y = t.softmax(table, -1);
          t.addInPlace(y, table);
          return [t.rmsNorm(y, weight)];
        },
      ],
      [
        'not what an unrelated call makes just before',
        ['neg', 'fused_mul_rmsNorm'],
        () => {
          const [made, other] = [t.mul(table, 2), t.neg(table)];
          return [t.rmsNorm(made, weight), other];
        },
      ],
      [
        'not what is written only afterwards',
        ['softmax', 'rmsNorm', 'add_'],
        () => {
          const y = t.softmax(table, -1);
          const normed = t.rmsNorm(y, weight);
          t.addInPlace(y, table);
          return [normed, y];
        },
      ],
      [
        'not a part of what is made',
        ['neg', 'rmsNorm'],
        () => [t.rmsNorm(t.slice(t.neg(table), 0, 0, 3), weight)],
      ],
      ['takes rows of 8192', ['fused_neg_rmsNorm'], () => [t.rmsNorm(t.neg(long[0]), long[1])]],
      ['not longer ones', ['neg', 'rmsNorm'], () => [t.rmsNorm(t.neg(longer[0]), longer[1])]],
      [
        'finds who reads the result behind another',
        ['fused_rmsNorm_mul', 'neg'],
        () => {
          const normed = t.rmsNorm(table, weight);
          const other = t.neg(table);
          return [t.mul(normed, 2), other];
        },
      ],
    ])('%s', (_, expected, fn) => {
      expect(names(fuseProloguesAndEpilogues, fn)).toEqual(expected);
    });
    it.each<[string, string[], (own: Tensor) => Tensor]>([
      [
        'what the prologue reads',
        ['softmax', 'fused_mul_rmsNorm_add_'],
        (own) => t.rmsNorm(t.mul(own, table), weight),
      ],
      [
        'not over a row of it that other rows are multiplied by',
        ['softmax', 'fused_mul_rmsNorm', 'add_'],
        (own) => t.rmsNorm(t.mul(t.select(own, 0, 0), table), weight),
      ],
      [
        'not over a row of it that is the weight',
        ['softmax', 'rmsNorm', 'add_'],
        (own) => t.rmsNorm(table, t.select(own, 0, 0)),
      ],
    ])('writes over %s', (_, expected, normed) => {
      const found = names(fuseProloguesAndEpilogues, () => {
        const own = t.softmax(table, -1);
        t.addInPlace(own, normed(own));
        return [own];
      });
      expect(found).toEqual(expected);
    });
    it('writes no table in which it looks rows up', () => {
      const found = names(fuseProloguesAndEpilogues, () => {
        const own = t.softmax(tensor([8, 8]), -1);
        const normed = t.rmsNorm(t.embedding(own, ids), weight);
        t.addInPlace(own, normed);
        return [own];
      });
      expect(found).toEqual(['softmax', 'fused_embedding_rmsNorm', 'add_']);
    });
  });

  describe('finishTogether', () => {
    const finishes = (...made: (() => [Tensor, Tensor])[]) =>
      names(
        (graph) => finishTogether(graph, device.facts),
        () =>
          made.map((make) => {
            const [y, weight] = make();
            weight.grad = null;
            t.sum(y).backward();
            return weight.grad!.detach();
          }),
      ).filter((name) => name.startsWith('finish')).length;
    const leaf = () => tensor([8]).requiresGrad_();
    const [w1, w2] = [leaf(), leaf()];
    const normed = (x: Tensor, w: Tensor) => (): [Tensor, Tensor] => [t.mul(t.rmsNorm(x, w), x), w];
    it('of as many rows together, of others apart', () => {
      const [few, many] = [tensor([4, 8]), tensor([400, 8])];
      expect(finishes(normed(few, w1), normed(few, w2))).toBe(1);
      expect(finishes(normed(few, w1), normed(many, w2))).toBe(2);
    });
    it('not of what lies across', () => {
      const across = t.transpose(tensor([8, 4]));
      expect(finishes(normed(across, w1), normed(across, w2))).toBe(0);
    });
    it('not of nothing', () => {
      const none = tensor([0, 8]);
      expect(finishes(normed(none, w1), normed(none, w2))).toBe(0);
    });
  });

  describe('accumulateEmbeddings', () => {
    const [table, ids] = [tensor([6, 4]).requiresGrad_(), tensor([3], 'int64')];
    const gradient = () => {
      table.grad = null;
      t.embedding(table, ids).backward(tensor([3, 4]));
      return table.grad!;
    };
    const sum = (total: () => Tensor) => () => {
      const [own, added] = [total(), gradient()];
      t.noGrad(() => t.addInPlace(own, added));
      return [own];
    };
    it('not to what lies across', () => {
      const across = sum(() => t.transpose(t.mul(tensor([4, 6]), 2)));
      expect(names(accumulateEmbeddings, across)).toContain('embeddingBackward');
      expect(
        names(
          accumulateEmbeddings,
          sum(() => t.mul(tensor([6, 4]), 2)),
        ),
      ).not.toContain('embeddingBackward');
    });
    it('not to another dtype', () => {
      const wide = sum(() => t.mul(tensor([6, 4], 'float64'), 2));
      expect(names(accumulateEmbeddings, wide)).toContain('embeddingBackward');
    });
  });

  describe('foldCopies', () => {
    const x = tensor([4, 6]);
    const copies = (fn: () => readonly Tensor[]) =>
      names(foldCopies, fn).filter((name) => name === 'copy').length;
    it.each<[string, number, () => readonly Tensor[]]>([
      ['folds a copy of rows', 0, () => [t.contiguous(t.transpose(t.neg(tensor([4, 6, 2])), 0, 1))]],
      [
        'not of dimensions that are divided anew',
        1,
        () => [t.contiguous(t.transpose(t.view(t.neg(x), [6, 4])))],
      ],
      [
        'nor of one that is divided in two',
        1,
        () => [t.copy(t.transpose(t.view(t.neg(x), [2, 2, 6]), 0, 1))],
      ],
      [
        'one of two in a row',
        1,
        () => {
          const once = t.contiguous(t.transpose(t.neg(tensor([2, 3, 4])), 0, 1));
          return [t.contiguous(t.transpose(once, 0, 1))];
        },
      ],
    ])('%s', (_, expected, fn) => {
      expect(copies(fn)).toBe(expected);
    });
  });
});
