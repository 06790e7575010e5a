import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setFloat32MatmulKernel } from '../../src/op/float32-matmul-kernel.ts';
import * as t from '../../src/index.ts';
import {
  describeFloat32Products,
  expectFloat32,
  productCases,
  productOperands,
} from '../op-cases/matrix/float32-product.ts';
import { relativeError, sample } from '../op-cases/support/samples.ts';

const cuda = () => t.device('cuda');

/** ‖product - float64 product‖ / ‖float64 product‖, the float64 one on the CPU. */
function errorOf(product: t.Tensor, a: t.Tensor, b: t.Tensor): number {
  const exact = t.matmul(a.to('cpu').to('float64'), b.to('cpu').to('float64'));
  return relativeError(product.toFlatArray(), exact.toFlatArray());
}

// Half a unit in the last place, times the growth of rounding errors over a sum of k terms.
const float32Error = (k: number) => 2 ** -24 * Math.sqrt(k);

describe('float32 products on tensor cores', () => {
  const shapes = [
    [1024, 768, 768],
    [1024, 3072, 768],
    [777, 1030, 515],
  ] as const;

  it.each(shapes)('x·Wᵀ, dY·W and dYᵀ·x of %i × %i × %i are as exact as float32', (m, n, k) => {
    t.scope(() => {
      const x = sample([m, k], { seed: 1, domain: [-1, 1] }, cuda());
      const w = sample([n, k], { seed: 2, domain: [-1, 1] }, cuda());
      const dy = sample([m, n], { seed: 3, domain: [-1, 1] }, cuda());
      expect(errorOf(t.linear(x, w), x, t.transpose(w))).toBeLessThan(float32Error(k));
      expect(errorOf(t.matmul(dy, w), dy, w)).toBeLessThan(float32Error(n));
      expect(errorOf(t.matmul(t.transpose(dy), x), t.transpose(dy), x)).toBeLessThan(float32Error(m));
    });
  });

  it('keeps the digits of tensors of very different magnitude', () => {
    t.scope(() => {
      const x = sample([1024, 768], { seed: 4, domain: [-1e-20, 1e-20] }, cuda());
      const w = sample([768, 768], { seed: 5, domain: [-1e18, 1e18] }, cuda());
      expect(errorOf(t.linear(x, w), x, t.transpose(w))).toBeLessThan(float32Error(768));
    });
  });

  it('gives the same bits every time, also when shapes alternate', () => {
    t.scope(() => {
      const x = sample([1024, 768], { seed: 6 }, cuda());
      const w = sample([768, 768], { seed: 7 }, cuda());
      const v = sample([3072, 768], { seed: 8 }, cuda());
      const first = t.linear(x, w).toFlatArray();
      t.linear(x, v);
      expect(t.linear(x, w).toFlatArray()).toEqual(first);
    });
  });

  it('lets Inf and NaN through to their rows, and only there', () => {
    t.scope(() => {
      const values = new Float32Array(512 * 512).fill(0.5);
      values[3] = Infinity;
      values[512 * 7] = NaN;
      const x = t.fromTypedArray(values, [512, 512], { device: cuda() });
      const y = t.linear(x, sample([512, 512], { domain: [0.1, 1] }, cuda()));
      const rows = Array.from({ length: 512 }, (_, r) =>
        t.select(y, 0, r).toFlatArray().every(Number.isFinite),
      );
      expect(rows.map((finite, r) => (finite ? -1 : r)).filter((r) => r >= 0)).toEqual([0, 7]);
    });
  });
});

describe('the split-half product, element by element', { timeout: 60_000 }, () => {
  beforeEach(() => setFloat32MatmulKernel('split-half'));
  afterEach(() => setFloat32MatmulKernel('auto'));

  // Ragged in every dimension; several tiles; one tile whose K blocks are shared out over many multiprocessors.
  describeFloat32Products(cuda, [
    { m: 129, n: 65, k: 130 },
    { m: 260, n: 200, k: 192 },
    { m: 64, n: 72, k: 4096 },
  ]);

  it.each(productCases)('gives the same bits every time: %s', (name) => {
    t.scope(() => {
      const sizes = { m: 300, n: 200, k: 2000 };
      const { a, b } = productOperands(name, sizes);
      const x = t.fromTypedArray(a, [sizes.m, sizes.k], { device: cuda() });
      const y = t.fromTypedArray(b, [sizes.k, sizes.n], { device: cuda() });
      const first = t.matmul(x, y).toFlatArray();
      for (let i = 0; i < 3; i++) expect(t.matmul(x, y).toFlatArray()).toEqual(first);
    });
  });

  it('multiplies batches, and one matrix for all of a batch', () => {
    t.scope(() => {
      const sizes = { m: 70, n: 66, k: 150 };
      const parts = ['any range in both', 'rows over 1e±10', 'NaN'].map((name) =>
        productOperands(name, sizes),
      );
      const batched = (values: readonly Float32Array[], rows: number, columns: number) =>
        t.fromTypedArray(Float32Array.from(values.flatMap((part) => Array.from(part))), [3, rows, columns], {
          device: cuda(),
        });
      const a = batched(
        parts.map((part) => part.a),
        sizes.m,
        sizes.k,
      );
      const b = batched(
        parts.map((part) => part.b),
        sizes.k,
        sizes.n,
      );
      const [whole, shared] = [t.matmul(a, b), t.matmul(a, t.select(b, 0, 0))];
      parts.forEach((part, i) => {
        expectFloat32(t.select(whole, 0, i).toFlatArray(), part, sizes);
        expectFloat32(t.select(shared, 0, i).toFlatArray(), { a: part.a, b: parts[0]!.b }, sizes);
      });
    });
  });
});
