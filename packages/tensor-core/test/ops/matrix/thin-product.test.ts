import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { askTorch, torchPython } from '../../tensor/torch-results.ts';

/** [..., n, m] as the [..., m, n] that it was transposed from: a view whose memory has the other order. */
function turned(x: Tensor): Tensor {
  return t.transpose(t.contiguous(t.transpose(x)));
}

/** Integers whose sums are exact in float32, in any order. */
function whole(shape: readonly number[], seed: number): Tensor {
  return t.cast(t.randint(-2, 3, shape, { seed }), 'float32');
}

const inFloat64 = (a: Tensor, b: Tensor, scale: number) =>
  t.matmul(t.cast(a, 'float64'), t.cast(b, 'float64'), { scale }).toFlatArray();

describe('a thin product over a long inner length', () => {
  // 1,024 is the first that is split; 1,027 and 8,209 have no pieces of equal length, 3,000 has pieces of 125.
  const lengths = [1023, 1024, 1027, 3000, 8192, 8209, 12_288];
  const sizes = [
    [1, 1],
    [1, 3],
    [3, 1],
    [2, 4],
    [5, 16],
    [1, 40],
    [40, 1],
    [70, 16],
    [70, 15],
  ] as const;
  it.each(lengths)("adds each of its %i terms once, whatever its operands' layouts", (length) => {
    t.scope(() => {
      for (const [rows, columns] of sizes) {
        const [a, b] = [whole([rows, length], rows), whole([length, columns], columns)];
        const expected = inFloat64(a, b, 0.5);
        for (const left of [a, turned(a)]) {
          for (const right of [b, turned(b)])
            expect(t.matmul(left, right, { scale: 0.5 }).toFlatArray()).toEqual(expected);
        }
      }
    });
  });

  it.each([
    ['of both', [3, 2, 1031], [3, 1031, 4]],
    ['that is broadcast', [2, 1, 4, 1536], [3, 1536, 3]],
    ['of rows', [2, 3, 1, 1536], [3, 1536, 40]],
    ['of columns', [3, 40, 8192], [3, 8192, 1]],
    ['of rows by columns', [2, 3, 1, 1536], [3, 1536, 1]],
    ['before one matrix', [2, 3, 1536], [1536, 4]],
    ['before one column', [2, 70, 8192], [1, 8192, 1]],
    ['behind one matrix', [3, 1536], [2, 1536, 4]],
    ['of one', [1, 1, 3, 1536], [1, 1536, 4]],
    ['of none', [0, 3, 1536], [0, 1536, 4]],
  ])('has a batch %s', (_, shapeA, shapeB) => {
    t.scope(() => {
      const [a, b] = [whole(shapeA, 1), whole(shapeB, 2)];
      const expected = inFloat64(a, b, 1);
      for (const left of [a, turned(a)]) {
        for (const right of [b, turned(b)]) {
          const product = t.matmul(left, right);
          expect(product.toFlatArray()).toEqual(expected);
          expect(product.shape.slice(-2)).toEqual([shapeA.at(-2), shapeB.at(-1)]);
        }
      }
    });
  });

  it('keeps NaN and infinities in their rows and columns', () => {
    t.scope(() => {
      const a = t.ones([4, 2048]);
      const b = t.ones([2048, 3]);
      t.fillInPlace(t.slice(t.slice(a, 0, 1, 2), 1, 1500, 1501), NaN);
      t.fillInPlace(t.slice(t.slice(b, 1, 2, 3), 0, 0, 1), Infinity);
      const rows = [2048, 2048, Infinity];
      expect(t.matmul(a, b).toFlatArray()).toEqual([...rows, NaN, NaN, NaN, ...rows, ...rows]);
    });
  });
});

const script = `
import json, sys, torch
generator = torch.Generator().manual_seed(0)
def error(rows, columns, terms, way):
    total, draws = 0, 3 if terms < 1e5 else 1
    for _ in range(draws):
        a = torch.rand((terms, rows) if way[0] else (rows, terms), generator=generator)
        b = torch.rand((columns, terms) if way[1] else (terms, columns), generator=generator)
        a, b = a.T if way[0] else a, b.T if way[1] else b
        exact = a.double() @ b.double()
        total += (((a @ b).double() - exact) / exact).square().mean().item() / draws
    return total ** 0.5
print(json.dumps([[error(*case, way) for way in ((0, 0), (0, 1), (1, 0), (1, 1))] for case in json.load(sys.stdin)]))
`;

/** The root of the mean squared relative error of products of numbers from 0 to 1. */
function errorOf(rows: number, columns: number, terms: number, turnA: boolean, turnB: boolean): number {
  const draws = terms < 1e5 ? 3 : 1;
  let total = 0;
  for (let seed = 0; seed < draws; seed++) {
    t.scope(() => {
      const [a, b] = [t.uniform([rows, terms], { seed }), t.uniform([terms, columns], { seed: seed + 10 })];
      const exact = t.matmul(t.cast(a, 'float64'), t.cast(b, 'float64'));
      const product = t.matmul(turnA ? turned(a) : a, turnB ? turned(b) : b);
      const difference = t.div(t.sub(t.cast(product, 'float64'), exact), exact);
      total += t.mean(t.mul(difference, difference)).item() / draws;
    });
  }
  return Math.sqrt(total);
}

describe.skipIf(!torchPython)('a thin product compared to PyTorch', () => {
  const sizes = [
    [1, 1],
    [1, 4],
    [4, 1],
    [2, 3],
    [4, 4],
    [1, 40],
    [40, 1],
  ] as const;
  const cases: (readonly [rows: number, columns: number, terms: number])[] = [
    ...[1024, 65_536].flatMap((terms) => sizes.map((size) => [...size, terms] as const)),
    [1, 1, 1_000_003],
    [2, 3, 1_000_003],
    [1, 1, 4_000_000],
    [1, 4, 4_000_000],
  ];
  const ways = [false, true].flatMap((a) => [false, true].map((b) => [a, b] as const));
  const torch = torchPython ? (askTorch(script, cases) as number[][]) : [];

  it.each(cases.map((each, i) => [...each, i] as const))(
    'is at most twice as far from float64, and a rounding: %i by %i of %i terms',
    (rows, columns, terms, i) => {
      // PyTorch's errors differ tenfold among the four layouts of operands.
      const bound = 2 * Math.min(...torch[i]!) + 2 ** -24;
      for (const [turnA, turnB] of ways)
        expect(errorOf(rows, columns, terms, turnA, turnB)).toBeLessThanOrEqual(bound);
    },
  );

  it('equals that of a compiled function, bit for bit', () => {
    const compiled = t.compile((a: Tensor, b: Tensor) => t.matmul(a, b));
    t.scope(() => {
      const [a, b] = [t.uniform([3, 65_537], { seed: 1 }), t.uniform([65_537, 2], { seed: 2 })];
      const eager = t.matmul(a, b).toFlatArray();
      for (let call = 0; call < 4; call++) expect(compiled(a, b).toFlatArray()).toEqual(eager);
      expect(compiled.cache.hits).toBeGreaterThan(0);
    });
  });
});
