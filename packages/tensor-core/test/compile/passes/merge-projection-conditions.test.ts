import { describe, expect, it } from 'vitest';
import { accumulateProducts } from '../../../src/compile/passes/accumulate-products.ts';
import { mergeProducts } from '../../../src/compile/passes/merge-products.ts';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { namesAfter } from './names-after.ts';

const low = 'bfloat16';

// What random programs do not meet: one condition of mergeProducts that decides.
describe('mergeProducts, where one condition decides', () => {
  const device = openPlanningDevice();
  const tensor = (shape: readonly number[], dtype: DType = low) => t.zeros(shape, { device, dtype });
  /** How many products are left. */
  const products = (fn: () => readonly Tensor[]) =>
    namesAfter(device, (graph) => mergeProducts(accumulateProducts(graph)), fn).filter((name) =>
      /^matmul|^addmm/.test(name),
    ).length;
  /** Calls that nobody needs, but that lie between. */
  const between = tensor([1]);
  const keepApart = (count: number) => Array.from({ length: count }, () => t.neg(between));

  describe('projections', () => {
    const x = tensor([4, 8]);
    const wide = [tensor([8, 8], 'float32'), tensor([8, 8], 'float32')] as const;
    const lows = [tensor([8, 8]), tensor([8, 8])] as const;
    const [higher, mask] = [tensor([16, 8], 'float32'), tensor([4, 8], 'bool')];
    const doubles = [tensor([8, 8], 'float64'), tensor([8, 8], 'float64')] as const;
    const cast = (i: 0 | 1) => t.cast(wide[i], low);
    const both = (a: Tensor, b: Tensor) => [t.silu(a), t.neg(b)];
    const twice = t.defineOp<undefined>({
      name: 'twice',
      autocast: 'none',
      infer: ([a, b]) => [a!, b!],
      cuda: { kind: 'pointwise', expressions: () => ['2 * a', '2 * b'] },
      cpu: { kind: 'host', run: () => {} },
    });
    it.each<[string, number, () => readonly Tensor[]]>([
      ['are one product', 1, () => both(t.linear(x, cast(0)), t.linear(x, cast(1)))],
      [
        'not far apart',
        2,
        () => {
          const first = t.linear(x, cast(0));
          const others = keepApart(40);
          return [...both(first, t.linear(x, cast(1))), ...others];
        },
      ],
      [
        'not by weights of which one lies apart',
        2,
        () => {
          const w = t.mul(tensor([8, 16]), 2);
          const other = t.view(t.slice(w, 0, 4, 8), [8, 8]);
          return both(t.linear(x, t.slice(w, 1, 0, 8)), t.linear(x, other));
        },
      ],
      [
        'not by the first part of a cast',
        2,
        () => both(t.linear(x, t.slice(t.cast(higher, low), 0, 0, 8)), t.linear(x, cast(1))),
      ],
      [
        'not by the last part of a cast',
        2,
        () => both(t.linear(x, t.slice(t.cast(higher, low), 0, 8, 16)), t.linear(x, cast(1))),
      ],
      [
        'not of float32',
        2,
        () => {
          const single = (i: 0 | 1) => t.cast(doubles[i], 'float32');
          return both(t.linear(wide[0], single(0)), t.linear(wide[0], single(1)));
        },
      ],
      [
        'of which two have one weight: one of them',
        2,
        () => {
          const w = cast(0);
          return [t.exp(t.linear(x, w)), ...both(t.linear(x, w), t.linear(x, cast(1)))];
        },
      ],
      [
        'of which a norm reads a part of each row',
        1,
        () => {
          const [a, b] = [t.linear(x, t.cast(higher, low)), t.linear(x, cast(1))];
          return [t.rmsNorm(t.slice(a, 1, 0, 8), tensor([8])), t.neg(b)];
        },
      ],
      [
        'of which one is the third that its reader reads',
        1,
        () => {
          const [a, b] = [t.linear(x, cast(0)), t.linear(x, cast(1))];
          return [t.where(mask, x, a), t.neg(b)];
        },
      ],
      [
        'not where rows are read that begin further on',
        2,
        () => {
          const [a, b] = [t.linear(x, cast(0)), t.linear(x, cast(1))];
          return [t.neg(t.view(t.slice(t.view(a, [32]), 0, 1, 25), [3, 8])), t.neg(b)];
        },
      ],
      [
        'not where one of two results is written across the ends of rows',
        2,
        () => {
          const [a, b] = [t.linear(x, t.cast(higher, low)), t.linear(x, cast(1))];
          const rows = t.view(t.slice(t.view(a, [64]), 0, 8, 56), [3, 16]);
          const given = [tensor([3, 16]), tensor([3, 16])];
          t.noGrad(() => t.apply(twice, given, undefined, [rows]));
          return both(a, b);
        },
      ],
      [
        'of which others read some rows and columns, and of a weight, too',
        1,
        () => {
          const w = cast(1);
          const [a, b] = [t.linear(x, cast(0)), t.linear(x, w)];
          const parts = [t.slice(b, 0, 1, 3), t.slice(b, 1, 2, 6), t.slice(t.slice(b, 0, 2, 4), 1, 4, 8)];
          return [...both(a, b), ...parts.map((part) => t.exp(part)), t.exp(t.slice(w, 0, 3, 5))];
        },
      ],
      [
        'not where pairs are read across the ends of rows',
        2,
        () => {
          const [a, b] = [t.linear(x, cast(0)), t.linear(x, cast(1))];
          return [t.neg(t.view(t.slice(t.view(a, [32]), 0, 4, 28), [3, 4, 2])), t.neg(b)];
        },
      ],
      [
        'not by a weight that is kept',
        2,
        () => {
          const kept = cast(0);
          return [...both(t.linear(x, kept), t.linear(x, cast(1))), kept];
        },
      ],
      [
        'not by weights that other ops make of arguments',
        2,
        () => both(t.linear(x, t.mul(lows[0], 2)), t.linear(x, t.mul(lows[1], 3))),
      ],
      [
        'not by a weight that is written again',
        2,
        () => {
          const w = cast(0);
          t.fillInPlace(w, 1);
          return both(t.linear(x, w), t.linear(x, cast(1)));
        },
      ],
      [
        'not where stacked weights are written between',
        2,
        () => {
          const w = t.mul(tensor([16, 8]), 2);
          const first = t.linear(x, t.slice(w, 0, 0, 8));
          const later = t.slice(w, 0, 8, 16);
          t.fillInPlace(later, 1);
          return both(first, t.linear(x, later));
        },
      ],
      [
        'not of nothing',
        2,
        () => {
          const none = tensor([0, 8]);
          return both(t.linear(none, cast(0)), t.linear(none, cast(1)));
        },
      ],
    ])('%s', (_, expected, fn) => {
      expect(products(fn)).toBe(expected);
    });
  });
});
