import { describe, expect, it } from 'vitest';
import { accumulateEmbeddings } from '../../../src/compile/passes/accumulate-embeddings.ts';
import { accumulateProducts } from '../../../src/compile/passes/accumulate-products.ts';
import { finishTogether } from '../../../src/compile/passes/finish-together.ts';
import { foldCopies } from '../../../src/compile/passes/fold-copies.ts';
import { fuseProloguesAndEpilogues } from '../../../src/compile/passes/fuse-prologues-epilogues.ts';
import { fusePointwise } from '../../../src/compile/passes/fuse-pointwise.ts';
import { mergeProducts } from '../../../src/compile/passes/merge-products.ts';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { namesAfter } from './names-after.ts';

// What random programs do not reach: single conditions that decide a pass, on a GPU that computes nothing.
describe('passes, where one condition decides', () => {
  const device = openPlanningDevice();
  const tensor = (shape: readonly number[], dtype: DType = 'float32') => t.zeros(shape, { device, dtype });
  const leaf = (shape: readonly number[], dtype: DType = 'float32') => tensor(shape, dtype).requiresGrad_();

  const names = (pass: (graph: Graph) => Graph, fn: () => readonly Tensor[]) => namesAfter(device, pass, fn);
  const fuseAll = (graph: Graph) => fuseProloguesAndEpilogues(fusePointwise(graph));

  describe('accumulateEmbeddings leaves the sum alone', () => {
    const [table, ids] = [leaf([6, 4]), tensor([3], 'int64')];
    const gradientOf = (dy: Tensor) => {
      table.grad = null;
      t.embedding(table, ids).backward(dy);
      return table.grad!;
    };
    it('where what it is added to is what it is made of', () => {
      const sum = () => {
        const total = t.mul(tensor([6, 4]), 2);
        const gradient = gradientOf(t.slice(total, 0, 1, 4));
        t.noGrad(() => t.addInPlace(total, gradient));
        return [total];
      };
      expect(names(accumulateEmbeddings, sum)).toContain('embeddingBackward');
    });
    it('but adds to what is something else', () => {
      const sum = () => {
        const total = t.mul(tensor([6, 4]), 2);
        const gradient = gradientOf(tensor([3, 4]));
        t.noGrad(() => t.addInPlace(total, gradient));
        return [total];
      };
      expect(names(accumulateEmbeddings, sum)).toEqual(['mul', 'embedding', 'fused_embeddingBackward_add_']);
    });
  });

  describe('accumulateProducts', () => {
    const [x, w, c] = [tensor([4, 8], 'bfloat16'), tensor([8, 8], 'bfloat16'), tensor([4, 8], 'bfloat16')];
    const product = () => t.matmul(x, w);
    it.each<[string, string[], () => Tensor]>([
      ['takes a sum', ['addmm'], () => t.add(product(), c)],
      ['takes a sum that is wider', ['addmm'], () => t.add(t.cast(product(), 'float32'), tensor([4, 8]))],
      ['not of two dtypes', ['matmul', 'cast', 'add'], () => t.add(t.cast(product(), 'float32'), c)],
      ['not to a row', ['matmul', 'add'], () => t.add(product(), tensor([8], 'bfloat16'))],
      [
        'not to what lies across',
        ['matmul', 'add'],
        () => t.add(product(), t.transpose(tensor([8, 4], 'bfloat16'))),
      ],
      ['not of a part', ['matmul', 'add'], () => t.add(t.slice(product(), 0, 0, 2), t.slice(c, 0, 0, 2))],
      ['not of a repeated product', ['matmul', 'add'], () => t.add(t.matmul(t.slice(x, 0, 0, 1), w), c)],
      ['not of a difference', ['matmul', 'sub'], () => t.sub(product(), c)],
      [
        'not of float64',
        ['matmul', 'cast', 'add'],
        () => t.add(t.cast(product(), 'float64'), tensor([4, 8], 'float64')),
      ],
      [
        'not of what is repeated as it is widened',
        ['matmul', 'cast', 'add'],
        () => t.add(t.cast(t.expand(t.matmul(t.slice(x, 0, 0, 1), w), [4, 8]), 'float32'), tensor([4, 8])),
      ],
    ])('%s', (_, expected, fn) => {
      expect(names(accumulateProducts, () => [fn()])).toEqual(expected);
    });
  });

  describe('mergeProducts', () => {
    const x = tensor([4, 8], 'bfloat16');
    const weights = [leaf([8, 8]), leaf([8, 8]), leaf([16, 8])];
    const cast = (i: number, dtype: DType = 'bfloat16') => t.cast(weights[i]!.detach(), dtype);
    const products = (fn: () => readonly Tensor[]) =>
      names(mergeProducts, fn).filter((name) => name === 'matmul').length;
    const both = (a: Tensor, b: Tensor) => [t.silu(a), t.neg(b)];
    it.each<[string, number, () => readonly Tensor[]]>([
      ['merges projections', 1, () => both(t.linear(x, cast(0)), t.linear(x, cast(1)))],
      ['of several lengths', 1, () => both(t.linear(x, cast(0)), t.linear(x, cast(2)))],
      [
        'not of one weight',
        2,
        () => {
          const w = cast(0);
          return both(t.linear(x, w), t.linear(x, w));
        },
      ],
      ['not where one is turned', 2, () => both(t.linear(x, cast(0)), t.matmul(x, cast(1)))],
      ['not where both are', 2, () => both(t.matmul(x, cast(0)), t.matmul(x, cast(1)))],
      ['not of two activations', 2, () => both(t.linear(x, cast(0)), t.linear(t.neg(x), cast(1)))],
      [
        'not where the activation is written between',
        2,
        () => {
          const own = t.neg(x);
          const a = t.linear(own, cast(0));
          t.fillInPlace(own, 1);
          return both(a, t.linear(own, cast(1)));
        },
      ],
      [
        'not of weights that are written between',
        2,
        () => {
          const [v, w] = [cast(0), cast(1)];
          const a = t.linear(x, v);
          t.fillInPlace(w, 1);
          return both(a, t.linear(x, w));
        },
      ],
      ['not of results that are kept', 2, () => [t.linear(x, cast(0)), t.linear(x, cast(1))]],
      [
        'not of results that are written',
        2,
        () => {
          const [a, b] = [t.linear(x, cast(0)), t.linear(x, cast(1))];
          t.fillInPlace(a, 0);
          return both(a, b);
        },
      ],
      [
        'not of results that somebody reads across rows',
        2,
        () => {
          const [a, b] = [t.linear(x, cast(0)), t.linear(x, cast(1))];
          return both(t.reshape(a, [32]), b);
        },
      ],
      [
        'not of results that a norm reads, which takes dense rows',
        2,
        () => {
          const [a, b] = [t.linear(x, cast(0)), t.linear(x, cast(1))];
          return [t.rmsNorm(a, tensor([8])), t.rmsNorm(b, tensor([8]))];
        },
      ],
      [
        'not of float32',
        2,
        () => {
          const wide = tensor([4, 8]);
          return both(t.linear(wide, weights[0]!.detach()), t.linear(wide, weights[1]!.detach()));
        },
      ],
      [
        'not of rows that fill no vectors',
        2,
        () => {
          const narrow = tensor([4, 3], 'bfloat16');
          const [a, b] = [t.cast(tensor([5, 3]), 'bfloat16'), t.cast(tensor([5, 3]), 'bfloat16')];
          return both(t.linear(narrow, a), t.linear(narrow, b));
        },
      ],
      [
        'not of weights that other ops make',
        2,
        () => both(t.linear(x, t.mul(cast(0), 2)), t.linear(x, t.mul(cast(1), 2))),
      ],
      [
        'of views of one matrix that lie one behind the other',
        1,
        () => {
          const w = t.mul(tensor([16, 8], 'bfloat16'), 2);
          return both(t.linear(x, t.slice(w, 0, 0, 8)), t.linear(x, t.slice(w, 0, 8, 16)));
        },
      ],
      [
        'not of those that do not',
        2,
        () => {
          const w = t.mul(tensor([24, 8], 'bfloat16'), 2);
          return both(t.linear(x, t.slice(w, 0, 0, 8)), t.linear(x, t.slice(w, 0, 16, 24)));
        },
      ],
    ])('%s', (_, expected, fn) => {
      expect(products(fn)).toBe(expected);
    });

    const trained = (use: (x: Tensor) => Tensor) => () => {
      const input = leaf([4, 8], 'bfloat16');
      for (const weight of weights) weight.grad = null;
      t.sum(t.cast(use(t.mul(input, 2)), 'float32')).backward();
      return [input.grad!.detach(), ...weights.flatMap(({ grad }) => (grad ? [t.mul(grad, 2)] : []))];
    };
    const project = (y: Tensor, i: number) => t.linear(y, t.cast(weights[i]!, 'bfloat16'));
    it.each<[string, number, (y: Tensor) => Tensor]>([
      [
        'merges the gradients of an activation, too',
        4,
        (y) => t.mul(t.silu(project(y, 0)), t.tanh(project(y, 1))),
      ],
      [
        'of three',
        5,
        (y) => t.concat([t.silu(project(y, 0)), t.tanh(project(y, 1)), t.sigmoid(project(y, 2))], 1),
      ],
      [
        'not the gradients of two activations',
        6,
        (y) => t.mul(t.silu(project(y, 0)), t.tanh(project(t.neg(y), 1))),
      ],
    ])('%s', (_, expected, use) => {
      const merged = names((graph) => mergeProducts(accumulateProducts(graph)), trained(use));
      expect(merged.filter((name) => /^matmul|^addmm/.test(name))).toHaveLength(expected);
    });
  });

  describe('fuseProloguesAndEpilogues', () => {
    const [table, weight] = [tensor([6, 8]), tensor([8])];
    const ids = tensor([8], 'int64');
    it.each<[string, string[], () => Tensor[]]>([
      ['looks rows up', ['fused_embedding_rmsNorm'], () => [t.rmsNorm(t.embedding(table, ids), weight)]],
      [
        'not by ids that lie apart',
        ['embedding', 'rmsNorm'],
        () => [t.rmsNorm(t.embedding(table, t.slice(ids, 0, 0, 8, 2)), weight)],
      ],
      [
        'not of a table that lies across',
        ['embedding', 'rmsNorm'],
        () => [t.rmsNorm(t.embedding(t.transpose(tensor([8, 6])), ids), weight)],
      ],
      [
        'not of what begins between vectors',
        ['mul', 'rmsNorm'],
        () => [t.rmsNorm(t.mul(t.view(t.slice(tensor([17]), 0, 1), [2, 8]), 2), weight)],
      ],
      [
        'not of a row that begins between vectors',
        ['mul', 'rmsNorm'],
        () => [t.rmsNorm(t.mul(table, t.slice(tensor([9]), 0, 1)), weight)],
      ],
      [
        'not of a row that lies apart',
        ['mul', 'rmsNorm'],
        () => [t.rmsNorm(t.mul(table, t.slice(tensor([16]), 0, 0, 16, 2)), weight)],
      ],
      ['of a row', ['fused_mul_rmsNorm'], () => [t.rmsNorm(t.mul(table, weight), weight)]],
      ['not of nothing', ['mul', 'rmsNorm'], () => [t.rmsNorm(t.mul(tensor([0, 8]), 2), weight)]],
      [
        'not of a weight that lies apart',
        ['mul', 'rmsNorm'],
        () => [t.rmsNorm(t.mul(table, 2), t.slice(tensor([16]), 0, 0, 16, 2))],
      ],
      [
        'not of a reader that overwrites the result',
        ['rmsNorm', 'neg', 'add_'],
        () => {
          const y = t.rmsNorm(table, weight);
          const z = t.neg(t.select(y, 0, 0));
          t.addInPlace(y, table);
          return [y, z];
        },
      ],
      [
        'not of an argument that is overwritten for the norm: it stays so',
        ['mul', 'rmsNorm'],
        () => {
          t.copyInPlace(table, t.softmax(table, -1));
          return [t.rmsNorm(table, weight)];
        },
      ],
    ])('%s', (name, expected, fn) => {
      const found = names(fuseAll, fn);
      if (name.includes('argument')) expect(found.at(-1)).toBe('rmsNorm');
      else expect(found).toEqual(expected);
    });
  });

  describe('finishTogether', () => {
    const x = tensor([4, 8]);
    const gradients =
      (...weights: Tensor[]) =>
      () => {
        for (const weight of weights) weight.grad = null;
        for (const weight of weights) t.sum(t.mul(t.rmsNorm(x, weight), x)).backward();
        return weights.map(({ grad }) => grad!.detach());
      };
    const finishes = (...weights: Tensor[]) =>
      names((graph) => finishTogether(graph, device.facts), gradients(...weights)).filter((name) =>
        name.startsWith('finish'),
      ).length;
    it('finishes those of one shape and dtype together', () => {
      expect(finishes(leaf([8]), leaf([8]))).toBe(1);
      expect(finishes(leaf([8]), leaf([8], 'bfloat16'))).toBe(2);
      expect(finishes(leaf([8]), leaf([8]), leaf([8], 'bfloat16'))).toBe(2);
    });
  });

  describe('foldCopies', () => {
    const x = tensor([4, 2, 4]);
    const heads = (y: Tensor) => t.transpose(y, 0, 1);
    it.each<[string, number, () => Tensor[]]>([
      ['folds a copy of heads', 0, () => [t.contiguous(heads(t.neg(x)))]],
      [
        'not where somebody else reads them',
        1,
        () => {
          const y = t.neg(x);
          return [t.contiguous(heads(y)), t.silu(y)];
        },
      ],
      [
        'not where they are kept',
        1,
        () => {
          const y = t.neg(x);
          return [t.contiguous(heads(y)), y];
        },
      ],
      ['not of a part', 1, () => [t.copy(t.slice(heads(t.neg(x)), 0, 0, 1))]],
      ['not of a part further on', 1, () => [t.copy(t.slice(heads(t.neg(x)), 0, 1, 2))]],
      ['not along other rows', 1, () => [t.contiguous(t.transpose(t.neg(x), -2, -1))]],
      ['not of a norm, which writes dense rows', 1, () => [t.contiguous(heads(t.rmsNorm(x, tensor([4]))))]],
      [
        'of a rotation',
        0,
        () => {
          const [turned, angles] = [tensor([2, 4, 8]), tensor([4, 4])];
          return [t.contiguous(t.transpose(t.rope(turned, angles, angles), 0, 1))];
        },
      ],
      ['not of repeated elements', 1, () => [t.copy(t.expand(t.neg(x), [2, 4, 2, 4]))]],
      [
        'where what it reads is written between',
        0,
        () => {
          const own = t.mul(x, 2);
          const y = t.neg(own);
          t.fillInPlace(own, 1);
          return [t.contiguous(heads(y)), own];
        },
      ],
    ])('%s', (_, copies, fn) => {
      expect(names(foldCopies, fn).filter((name) => name === 'copy')).toHaveLength(copies);
    });
  });

  describe('fusePointwise', () => {
    const many = (count: number) => Array.from({ length: count }, () => tensor([4, 8]));
    const sumOf = (count: number) => {
      const summands = many(count);
      return names(fusePointwise, () => [summands.reduce((a, b) => t.add(a, b))]);
    };
    const totalOf = (count: number) => {
      const [first, summands] = [tensor([4, 8]), many(count)];
      return names(fusePointwise, () => {
        const total = t.neg(first);
        for (const summand of summands) t.addInPlace(total, summand);
        return [total];
      });
    };
    it('makes kernels of no more operands than they take', () => {
      // Each sum adds one operand.
      expect(sumOf(5)).toHaveLength(1);
      expect(sumOf(6)).toHaveLength(2);
      expect(totalOf(7)).toHaveLength(1);
      expect(totalOf(8)).toHaveLength(2);
    });
    it('not of two shapes, dtypes, or of nothing', () => {
      const x = tensor([4, 8]);
      expect(names(fusePointwise, () => [t.neg(t.mul(x, 2))])).toEqual(['fused_mul_neg']);
      const [row, wide, none] = [tensor([8]), tensor([4, 8], 'float64'), tensor([0, 8])];
      expect(names(fusePointwise, () => [t.mul(x, 2), t.neg(row)])).toEqual(['neg', 'mul']);
      // Others stay separate while a group is open.
      const both = () => [t.neg(t.mul(x, 2)), t.neg(t.mul(wide, 2))];
      expect(names(fusePointwise, both)).toEqual(['mul', 'neg', 'fused_mul_neg']);
      expect(names(fusePointwise, () => [t.neg(t.mul(none, 2))])).toEqual(['mul', 'neg']);
    });
  });
});
