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

  describe('gradients of an activation', () => {
    const [g1, g2] = [tensor([4, 8]), tensor([4, 8])];
    const square = tensor([16, 8]);
    const stacked = () => {
      const w = t.mul(square, 2);
      return [t.slice(w, 0, 0, 8), t.slice(w, 0, 8, 16)] as const;
    };
    const summed = (first: Tensor, second: Tensor) => {
      t.addInPlace(first, second);
      return [first];
    };
    it.each<[string, number, () => readonly Tensor[]]>([
      [
        'are one product',
        1,
        () => {
          const [top, bottom] = stacked();
          return summed(t.matmul(t.neg(g1), top), t.matmul(t.neg(g2), bottom));
        },
      ],
      [
        'also where another one stays apart',
        2,
        () => {
          const [top, bottom] = stacked();
          const total = t.matmul(t.neg(g1), top);
          t.addInPlace(total, t.matmul(g2, tensor([8, 8])));
          return summed(total, t.matmul(t.neg(g2), bottom));
        },
      ],
      [
        'not of one gradient twice',
        2,
        () => {
          const [top, bottom] = stacked();
          const y = t.neg(g1);
          return summed(t.matmul(y, top), t.matmul(y, bottom));
        },
      ],
      [
        'not with another factor',
        2,
        () => {
          const [top, bottom] = stacked();
          return summed(t.matmul(t.neg(g1), top), t.matmul(t.neg(g2), bottom, { scale: 2 }));
        },
      ],
      [
        'not of a first weight whose rows lie apart',
        2,
        () => {
          const w = t.mul(tensor([8, 16]), 2);
          const other = t.view(t.slice(w, 0, 4, 8), [8, 8]);
          return summed(t.matmul(t.neg(g1), t.slice(w, 1, 0, 8)), t.matmul(t.neg(g2), other));
        },
      ],
      [
        'not of a second one whose rows lie apart',
        2,
        () => {
          const flat = t.mul(tensor([192]), 2);
          const other = t.slice(t.view(t.slice(flat, 0, 64, 192), [8, 16]), 1, 0, 8);
          const first = t.view(t.slice(flat, 0, 0, 64), [8, 8]);
          return summed(t.matmul(t.neg(g1), first), t.matmul(t.neg(g2), other));
        },
      ],
      [
        'not of weights of two storages',
        2,
        () => {
          const [top] = stacked();
          const [, bottom] = stacked();
          return summed(t.matmul(t.neg(g1), top), t.matmul(t.neg(g2), bottom));
        },
      ],
      [
        'not where a weight is written between',
        2,
        () => {
          const [top, bottom] = stacked();
          const total = t.matmul(t.neg(g1), top);
          t.fillInPlace(top, 1);
          return summed(total, t.matmul(t.neg(g2), bottom));
        },
      ],
      [
        'not far apart',
        2,
        () => {
          const [top, bottom] = stacked();
          const total = t.matmul(t.neg(g1), top);
          const others = keepApart(100);
          return [...summed(total, t.matmul(t.neg(g2), bottom)), ...others];
        },
      ],
      [
        'not where a part is added to',
        2,
        () => {
          const [top, bottom] = stacked();
          const total = t.matmul(t.neg(g1), top);
          t.addInPlace(t.slice(total, 0, 0, 2), t.matmul(t.neg(tensor([2, 8])), bottom));
          return [total];
        },
      ],
      [
        'not of a part of what is made',
        2,
        () => {
          const [top, bottom] = stacked();
          const part = t.slice(t.neg(tensor([8, 8])), 0, 0, 4);
          return summed(t.matmul(part, top), t.matmul(t.neg(g2), bottom));
        },
      ],
      [
        'not of what is made with other rows',
        2,
        () => {
          const [top, bottom] = stacked();
          const made = t.reshape(t.neg(tensor([2, 16])), [4, 8]);
          return summed(t.matmul(made, top), t.matmul(t.neg(g2), bottom));
        },
      ],
      [
        'not of what is only filled',
        2,
        () => {
          const [top, bottom] = stacked();
          return summed(t.matmul(tensor([4, 8]), top), t.matmul(t.neg(g2), bottom));
        },
      ],
      [
        'not of what is also added to a product',
        3,
        () => {
          const [top, bottom] = stacked();
          const y = t.neg(g1);
          const other = t.add(t.matmul(g2, tensor([8, 8])), y);
          return [...summed(t.matmul(y, top), t.matmul(t.neg(g2), bottom)), other];
        },
      ],
      [
        'not of nothing',
        2,
        () => {
          const [top, bottom] = stacked();
          const none = () => t.neg(tensor([0, 8]));
          return summed(t.matmul(none(), top), t.matmul(none(), bottom));
        },
      ],
    ])('%s', (_, expected, fn) => {
      expect(products(fn)).toBe(expected);
    });
  });

  describe('gradients of weights', () => {
    const [x, wide] = [tensor([4, 8]), tensor([4, 24])];
    const part = (y: Tensor, from: number, to = from + 8) => t.transpose(t.slice(y, 1, from, to));
    const product = (dy: Tensor, other = x) => t.matmul(dy, other, { dtype: 'float32' });
    const read = (...gradients: Tensor[]) => gradients.map((gradient) => t.mul(gradient, 2));
    it.each<[string, number, () => readonly Tensor[]]>([
      [
        'are one product',
        1,
        () => {
          const y = t.neg(wide);
          const [a, b, c] = [0, 8, 16].map((from) => product(part(y, from))) as [Tensor, Tensor, Tensor];
          return read(a, b, c);
        },
      ],
      [
        'also with others between',
        1,
        () => {
          const y = t.neg(wide);
          const first = product(part(y, 0));
          const others = keepApart(2);
          return [...read(first, product(part(y, 8))), ...others];
        },
      ],
      [
        'not where one is read before the last',
        2,
        () => {
          const y = t.neg(wide);
          const first = product(part(y, 0));
          const early = t.mul(first, 2);
          return [early, ...read(product(part(y, 8)))];
        },
      ],
      [
        'not of two activations',
        2,
        () => {
          const y = t.neg(wide);
          return read(product(part(y, 0)), product(part(y, 8), tensor([4, 8])));
        },
      ],
      [
        'not of two dtypes',
        2,
        () => {
          const y = t.neg(wide);
          return read(product(part(y, 0)), t.matmul(part(y, 8), x));
        },
      ],
      [
        'not of two factors',
        2,
        () => {
          const y = t.neg(wide);
          return read(product(part(y, 0)), t.matmul(part(y, 8), x, { dtype: 'float32', scale: 2 }));
        },
      ],
      [
        'not of two storages',
        2,
        () => {
          const [y, z] = [t.neg(wide), t.neg(wide)];
          return read(product(part(y, 0)), product(part(z, 8)));
        },
      ],
      [
        'not of columns that lie apart',
        2,
        () => {
          const y = t.neg(wide);
          return read(product(part(y, 0)), product(part(y, 16)));
        },
      ],
      [
        'not of rows of two lengths',
        2,
        () => {
          const y = t.neg(wide);
          const other = t.transpose(t.view(t.slice(t.view(y, [96]), 0, 8, 40), [4, 8]));
          return read(product(part(y, 0)), product(other));
        },
      ],
      [
        'not where the activation is written between',
        2,
        () => {
          const [y, own] = [t.neg(wide), t.neg(x)];
          const first = product(part(y, 0), own);
          t.fillInPlace(own, 1);
          return read(first, product(part(y, 8), own));
        },
      ],
      [
        'not where one of their own is written between',
        2,
        () => {
          const y = t.neg(wide);
          const first = product(part(y, 0));
          t.fillInPlace(t.slice(y, 1, 0, 8), 1);
          return read(first, product(part(y, 8)));
        },
      ],
      [
        'not far apart',
        2,
        () => {
          const y = t.neg(wide);
          const first = product(part(y, 0));
          const others = keepApart(100);
          return [...read(first, product(part(y, 8))), ...others];
        },
      ],
      [
        'not one alone that may be',
        2,
        () => {
          const y = t.neg(wide);
          const kept = product(part(y, 0));
          return [kept, ...read(product(part(y, 8)))];
        },
      ],
      [
        'not of results that fill no vectors',
        2,
        () => {
          const [y, narrow] = [t.neg(wide), tensor([4, 5])];
          const odd = (from: number) => t.matmul(part(y, from, from + 3), narrow, { dtype: 'float32' });
          return read(odd(0), odd(3));
        },
      ],
      [
        'not of gradients that are not turned',
        2,
        () => {
          const y = t.neg(tensor([8, 24]));
          const flat = (from: number) => product(t.slice(y, 1, from, from + 8), tensor([8, 8]));
          return read(flat(0), flat(8));
        },
      ],
    ])('%s', (_, expected, fn) => {
      expect(products(fn)).toBe(expected);
    });
  });
});
