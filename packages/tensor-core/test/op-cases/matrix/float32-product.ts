import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { uniformStream } from '../../../../../tooling/uniform-stream.ts';

/** float32's unit roundoff: half the distance from 1 to the next number. */
export const float32Roundoff = 2 ** -24;

/** The error that splitting the operands may add to SGEMM's own, as a multiple of |A||B|; see split_half.cuh. */
const splitError = 20 * float32Roundoff;

const largestFloat32 = (2 - 2 ** -23) * 2 ** 127;

export interface ProductSizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Row-major A of m×k and B of k×n. */
export interface Operands {
  readonly a: Float32Array;
  readonly b: Float32Array;
}

/** How far a product is from float64's, element by element. */
export interface ProductErrors {
  /** The largest |error| / (|A||B|). */
  readonly worst: number;
  /** The same of float32 multiply-adds along k, which is what SGEMM does. */
  readonly sgemmWorst: number;
  /** Elements whose NaN, Inf or overflow differs from IEEE arithmetic. */
  readonly wrong: number;
}

type Element = (x: number, row: number, column: number, random: () => number) => number;
const same: Element = (x) => x;
const wide: Element = (x, _row, _column, random) => x * 10 ** (24 * random() - 12);

const tokenScale: Element = (x, _row, column) => x * Math.exp(-1.7 * ((column * 37) % 41));
const tail: Element = (x, _row, _column, random) => x * (2 * random() - 1) ** 3 * (2 * random() - 1) ** 3;

/** Data by what is made of the normal samples of A [i, l] and of B [l, j]. */
const changes: Readonly<Record<string, readonly [Element, Element]>> = {
  'normal samples': [same, same],
  'positive samples': [(x) => Math.abs(x), (x) => Math.abs(x)],
  'rows over 1e±10': [(x, i) => x * 10 ** ((i % 21) - 10), same],
  'columns over 1e±10': [same, (x, _, j) => x * 10 ** ((j % 21) - 10)],
  'a row 2^-40 below its neighbours': [(x, i) => (i % 64 === 5 ? x * 2 ** -40 : x), same],
  'columns of k over 1e±6 against inverse rows': [
    (x, _, l) => x * 10 ** ((l % 13) - 6),
    (x, l) => x * 10 ** (6 - (l % 13)),
  ],
  'any range in A': [wide, same],
  'any range in both': [wide, wide],
  'any range in A, zeros in B': [wide, (x, l, j) => ((l + j) % 3 === 0 ? x : 0)],
  'token scales over e^-70': [(x, i) => x * Math.exp(-1.7 * ((i * 37) % 41)), same],
  'token scales along k': [tokenScale, same],
  'token scales along k, a tenth zeros': [tokenScale, (x, _l, _j, random) => (random() < 0.1 ? 0 : x)],
  'token scales along k, a tiny element in each column': [
    tokenScale,
    (x, l, j) => (l % 64 === j % 64 ? x * 1e-20 : x),
  ],
  'tiny in B where A is largest': [
    (x, _, l) => (l % 64 === 7 ? x : x * 1e-9),
    (x, l) => (l % 64 === 7 ? x * 1e-12 : x),
  ],
  'products of four samples': [tail, tail],
  'causal zeros': [(x, i, l) => (l <= i ? x : 0), same],
  'zeros of ReLU': [(x) => Math.max(x, 0), (x) => Math.max(x, 0)],
  'zero rows and columns': [(x, i) => (i % 3 ? 0 : x), (x, _, j) => (j % 5 ? 0 : x)],
  'nothing but zeros': [() => -0, same],
  denormals: [(x) => x * 1e-40, same],
  'denormals against large numbers': [(x) => x * 1e-40, (x) => x * 1e37],
  'denormal results': [(x) => x * 1e-21, (x) => x * 1e-22],
  '1e-20 by 1e18': [(x) => x * 1e-20, (x) => x * 1e18],
  '1e30 by 1e-30': [(x) => x * 1e30, (x) => x * 1e-30],
  'rows over 1e±30': [(x, i) => x * 10 ** (6 * (i % 11) - 30), same],
  'rows down to denormals, by weights': [(x, i) => x * 2 ** (-13 * (i % 12)), (x) => x * 0.02],
  '1e38 by ±1e38': [() => 1e38, (_x, _l, j) => (j % 2 ? 1e38 : -1e38)],
  Inf: [(x, i, l) => (l === 9 && i % 5 === 3 ? (i % 2 ? Infinity : -Infinity) : x), same],
  'Inf of both signs in a row': [(x, i, l) => (i === 2 ? (l % 2 ? Infinity : -Infinity) : x), same],
  'Inf by zero': [(x, i, l) => (l === 9 && i === 3 ? Infinity : x), (x, l) => (l === 9 ? 0 : x)],
  NaN: [same, (x, l, j) => (l === 4 && j % 7 === 3 ? NaN : x)],
};

export const productCases: readonly string[] = Object.keys(changes);

/** The data of one of `productCases`. */
export function productOperands(name: string, { m, n, k }: ProductSizes, seed = 1): Operands {
  const random = uniformStream(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const fill = (rows: number, columns: number, change: Element) =>
    Float32Array.from({ length: rows * columns }, (_, at) =>
      change(normal(), Math.floor(at / columns), at % columns, random),
    );
  const [changeA, changeB] = changes[name]!;
  return { a: fill(m, k, changeA), b: fill(k, n, changeB) };
}

/** Compares a product to float64's and to float32 multiply-adds on the same data. */
export function productErrors(
  product: ArrayLike<number>,
  { a, b }: Operands,
  sizes: ProductSizes,
): ProductErrors {
  const { m, n, k } = sizes;
  // What rounding among the denormals may add: half of the smallest one for each of the roundings.
  const underflow = (k + 2) * 2 ** -150;
  let [worst, sgemmWorst, wrong] = [0, 0, 0];
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let [exact, magnitude, sgemm, lowest, highest] = [0, 0, 0, 0, 0];
      for (let l = 0; l < k; l++) {
        const term = a[i * k + l]! * b[l * n + j]!; // exact: 48 bits of float64's 53
        exact += term;
        if (Number.isFinite(term)) magnitude += Math.abs(term);
        sgemm = Math.fround(sgemm + term);
        lowest = Math.min(lowest, term);
        highest = Math.max(highest, term);
      }
      const actual = product[i * n + j]!;
      if (!Number.isFinite(exact)) {
        // Finite terms that overflow part-way may meet an infinite one of the other sign.
        const mayBeNaN = magnitude >= largestFloat32 && Number.isNaN(actual);
        if (!Object.is(actual, exact) && !mayBeNaN) wrong++;
      } else if (magnitude >= largestFloat32) {
        if (!overflowsRightly(actual, exact, lowest < 0 && highest > 0)) wrong++;
      } else if (!Number.isFinite(actual)) {
        wrong++;
      } else {
        const relative = (value: number) =>
          magnitude === 0 ? Math.abs(value) : Math.max(0, Math.abs(value - exact) - underflow) / magnitude;
        worst = Math.max(worst, relative(actual));
        if (Number.isFinite(sgemm)) sgemmWorst = Math.max(sgemmWorst, relative(sgemm));
      }
    }
  }
  return { worst, sgemmWorst, wrong };
}

/**
 * Whether this may be a sum whose terms together exceed float32: with terms of one sign it is infinite once they do; with
 * mixed signs it may overflow part-way, depending on its order. It is never NaN.
 */
function overflowsRightly(actual: number, exact: number, mixed: boolean): boolean {
  const beyond = largestFloat32 * (1 + 2 ** -18); // further than an error takes a finite sum
  if (!mixed && Math.abs(exact) > beyond) return actual === Math.sign(exact) * Infinity;
  return !Number.isNaN(actual) && (Math.abs(exact) <= beyond || !Number.isFinite(actual));
}

const layouts = ['A·B', 'A·Bᵀ', 'Aᵀ·B'] as const;

/** Every case as a test: A·B by `matmul`, with neither, the second or the first operand stored transposed. */
export function describeFloat32Products(open: () => t.Device, shapes: readonly ProductSizes[]): void {
  const runs = shapes.flatMap((sizes) =>
    productCases.flatMap((name) => layouts.map((layout) => ({ ...sizes, name, layout }))),
  );
  it.each(runs)('$layout of $m × $n × $k: $name', ({ name, layout, ...sizes }) => {
    const operands = productOperands(name, sizes);
    const product = multiply(operands, sizes, layout, open());
    expectFloat32(product, operands, sizes);
  });
}

/** Expects each element of a product within SGEMM's own error, and what the split adds, of float64's. */
export function expectFloat32(product: ArrayLike<number>, operands: Operands, sizes: ProductSizes): void {
  const { worst, sgemmWorst, wrong } = productErrors(product, operands, sizes);
  expect(wrong).toBe(0);
  expect(worst).toBeLessThanOrEqual(sgemmWorst + splitError);
}

function multiply(
  { a, b }: Operands,
  { m, n, k }: ProductSizes,
  layout: (typeof layouts)[number],
  device: t.Device,
): number[] {
  return t.scope(() => {
    const x =
      layout === 'Aᵀ·B'
        ? t.transpose(t.fromTypedArray(transposed(a, m, k), [k, m], { device }))
        : t.fromTypedArray(a, [m, k], { device });
    const y =
      layout === 'A·Bᵀ'
        ? t.transpose(t.fromTypedArray(transposed(b, k, n), [n, k], { device }))
        : t.fromTypedArray(b, [k, n], { device });
    return t.matmul(x, y).toFlatArray();
  });
}

function transposed(values: Float32Array, rows: number, columns: number): Float32Array {
  return values.map((_, at) => values[(at % rows) * columns + Math.floor(at / rows)]!);
}
