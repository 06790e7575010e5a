import {
  type DType,
  type Device,
  type Tensor,
  add,
  cast,
  fromTypedArray,
  mul,
  scope,
  sum,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { uniformStream } from '../../../tooling/uniform-stream.ts';
import type { AttentionWithLse } from '../src/index.ts';
import { unitRoundoff } from './attempt.ts';

/** flashAttentionWithLse, or another function that is attention; the scale is 1. */
type CausalAttention = (q: Tensor, k: Tensor, v: Tensor, causal: boolean) => AttentionWithLse;

interface MaskCases {
  readonly dtypes: readonly DType[];
  /** Lengths of sequences of queries, each against every number of keys from 18 fewer to 18 more. */
  readonly queries: readonly number[];
  /** Queries and keys of which some scores are -∞: many keys are shared out among blocks, where kernels can. */
  readonly sizes: readonly (readonly [queries: number, keys: number])[];
}

const headDimension = 8;

/** Rows of attention whose scores are equal or, for keys that a query does not see, -∞: so are their weights. */
interface EqualWeights {
  /** Of the keys that are seen. Default 0. */
  readonly score?: number;
  readonly q: number[][];
  readonly k: number[][];
  readonly v: number[][];
  readonly causal: boolean;
  sees(query: number, key: number): boolean;
}

const wholeNumbers = (rows: number, seed: number): number[][] => {
  const next = uniformStream(seed);
  const row = () => Array.from({ length: headDimension }, () => Math.floor(next() * 5) - 2);
  return Array.from({ length: rows }, row);
};

const rowsOf = (rows: number, value: (row: number) => number): number[][] =>
  Array.from({ length: rows }, (_, i) => Array<number>(headDimension).fill(value(i)));

/** Numbers, and the sums of the absolute terms that each is a sum of. */
interface Exact {
  readonly values: number[];
  readonly sizes: number[];
}

type Results = Record<'output' | 'lse' | 'gradQ' | 'gradK' | 'gradV', Exact>;

/** What equal weights give, by definition. */
function exactOf({ q, k, v, sees, score = 0 }: EqualWeights, gradO: number[][], gradLse: number[]): Results {
  const zeros = (rows: number): Exact => ({
    values: Array<number>(rows * headDimension).fill(0),
    sizes: Array<number>(rows * headDimension).fill(0),
  });
  const results = {
    output: zeros(q.length),
    gradQ: zeros(q.length),
    gradK: zeros(k.length),
    gradV: zeros(k.length),
  };
  const lse: Exact = { values: [], sizes: [] };
  const addRow = (
    { values, sizes }: Exact,
    row: number,
    factor: number,
    size: number,
    x: readonly number[],
  ) => {
    for (let d = 0; d < headDimension; d++) {
      values[row * headDimension + d]! += factor * x[d]!;
      sizes[row * headDimension + d]! += size * Math.abs(x[d]!);
    }
  };
  // In loops: there are millions of pairs.
  const dot = (a: readonly number[], b: readonly number[]) => {
    let total = 0;
    for (let d = 0; d < headDimension; d++) total += a[d]! * b[d]!;
    return total;
  };
  const size = (a: readonly number[], b: readonly number[]) => {
    let total = 0;
    for (let d = 0; d < headDimension; d++) total += Math.abs(a[d]! * b[d]!);
    return total;
  };
  q.forEach((query, i) => {
    const seen = [...k.keys()].filter((j) => sees(i, j));
    const weight = seen.length === 0 ? 0 : 1 / seen.length;
    lse.values.push(score + Math.log(seen.length));
    lse.sizes.push(1 + Math.abs(score) + Math.abs(Math.log(seen.length || 1)));
    for (const j of seen) {
      addRow(results.output, i, weight, weight, v[j]!);
      addRow(results.gradV, j, weight, weight, gradO[i]!);
    }
    const delta = seen.reduce((total, j) => total + weight * dot(gradO[i]!, v[j]!), -gradLse[i]!);
    const deltaSize = seen.reduce(
      (total, j) => total + weight * size(gradO[i]!, v[j]!),
      Math.abs(gradLse[i]!),
    );
    for (const j of seen) {
      const factor = weight * (dot(gradO[i]!, v[j]!) - delta);
      const factorSize = weight * (size(gradO[i]!, v[j]!) + deltaSize);
      addRow(results.gradQ, i, factor, factorSize, k[j]!);
      addRow(results.gradK, j, factor, factorSize, query);
    }
  });
  return { ...results, lse };
}

/** Holds `names` of attention to what equal weights give, but for the roundings of their sums and of a few parts. */
function expectEqualWeights(
  attention: CausalAttention,
  problem: EqualWeights,
  names: readonly (keyof Results)[],
  dtype: DType,
  device: Device,
): void {
  scope(() => {
    const { q, k, v, causal, sees } = problem;
    const make = (rows: number[][]) =>
      cast(fromTypedArray(Float64Array.from(rows.flat()), [1, 1, rows.length, headDimension]), dtype).to(
        device,
      );
    const leaves = [q, k, v].map((rows) => make(rows).requiresGrad_()) as [Tensor, Tensor, Tensor];
    const { output, lse } = attention(...leaves, causal);
    // A row that sees no key has no gradient of its log-sum-exp.
    const isSeeing = q.map((_, i) => k.some((_key, j) => sees(i, j)));
    const gradO = wholeNumbers(q.length, 9);
    const gradLse = isSeeing.map((seeing, i) => (seeing ? (i % 3) - 1 : 0));
    const rows = cast(fromTypedArray(Float64Array.from(gradLse), lse.shape), lse.dtype).to(device);
    const loss = sum(cast(mul(output, make(gradO)), lse.dtype));
    (isSeeing.every(Boolean) ? add(loss, sum(mul(lse, rows))) : loss).backward();
    const exact = exactOf(problem, gradO, isSeeing.every(Boolean) ? gradLse : gradLse.map(() => 0));
    const [gradQ, gradK, gradV] = leaves.map((leaf) => leaf.grad!);
    const own = { output, lse, gradQ: gradQ!, gradK: gradK!, gradV: gradV! };
    const sums = Math.max(q.length, k.length) + headDimension;
    const wide = lse.dtype;
    const what = `${q.length} queries, ${k.length} keys, ${causal ? 'causal' : 'all'}`;
    for (const name of names) {
      // A few parts are rounded to the dtype, every sum in the wider one (Higham 2002, 3.1).
      const unit = (name === 'lse' ? 0 : 4 * unitRoundoff[dtype]!) + (sums + 8) * unitRoundoff[wide]!;
      const wrong = own[name].toFlatArray().flatMap((value, i) => {
        const expected = exact[name].values[i]!;
        const isRight = value === expected || Math.abs(value - expected) <= unit * exact[name].sizes[i]!;
        return isRight ? [] : [`${what}: ${name}[${i}] is ${value}, not ${expected}`];
      });
      expect(wrong.slice(0, 3)).toEqual([]);
    }
  });
}

const everything = ['output', 'lse', 'gradQ', 'gradK', 'gradV'] as const;

/** Holds attention to a causal mask between sequences of these lengths. */
export function expectMasked(
  attention: CausalAttention,
  [queries, keys]: readonly [queries: number, keys: number],
  dtype: DType,
  device: Device,
): void {
  const sees = (i: number, j: number) => j <= i + keys - queries;
  const [one, other, v] = [wholeNumbers(queries, 1), wholeNumbers(keys, 2), wholeNumbers(keys, 3)];
  const [noQ, noK] = [rowsOf(queries, () => 0), rowsOf(keys, () => 0)];
  for (const { q, k } of [
    { q: one, k: noK },
    { q: noQ, k: other },
  ])
    expectEqualWeights(attention, { q, k, v, causal: true, sees }, everything, dtype, device);
}

/** What attention must hold at every distance of its masks from its tiles, and where scores are -∞. */
export function describeMasks(attention: CausalAttention, open: () => Device, cases: MaskCases): void {
  describe.each(cases.dtypes)('masks in %s', (dtype) => {
    it.each(cases.queries)('end where they end, of %i queries', (queries) => {
      for (let shift = -18; shift <= 18; shift++) {
        if (queries + shift < 1) continue;
        expectMasked(attention, [queries, queries + shift], dtype, open());
      }
    });

    // Rows and keys past the last are zeros in a tile, whose score would be the largest.
    it.each(cases.queries)('hide what does not exist from scores far below 0, of %i queries', (queries) => {
      for (const keys of [1, 15, 17, 40, 65]) {
        for (const causal of [false, true]) {
          const sees = (i: number, j: number) => !causal || j <= i + keys - queries;
          const [q, k] = [rowsOf(queries, () => 1), rowsOf(keys, () => -125)];
          const problem = { q, k, v: wholeNumbers(keys, 3), causal, sees, score: -1000 };
          expectEqualWeights(attention, problem, everything, dtype, open());
        }
      }
    });

    // Products of 1e30 and -1e30 overflow float32; those of float64 do not.
    if (dtype === 'float64' || dtype === 'float16') return;
    const hidden: readonly (readonly [string, (key: number, keys: number) => boolean])[] = [
      ['all', () => true],
      ['all but the first', (key) => key > 0],
      ['all but the last', (key, keys) => key < keys - 1],
      ['all but the 16th and 17th', (key) => key !== 15 && key !== 16],
      ['all but the 64th and 65th', (key) => key !== 63 && key !== 64],
      ['the first half', (key, keys) => key < keys / 2],
      ['the second half', (key, keys) => key >= keys / 2],
      ['every second tile', (key) => key % 128 < 64],
    ];
    it.each(cases.sizes)('of %i queries and %i keys have rows whose scores are -∞', (queries, keys) => {
      for (const [, isHidden] of hidden) {
        for (const causal of [false, true]) {
          const q = rowsOf(queries, (i) => (i % 2 === 0 ? 1e30 : 0));
          const k = rowsOf(keys, (j) => (isHidden(j, keys) ? -1e30 : 0));
          const sees = (i: number, j: number) =>
            (!causal || j <= i + keys - queries) && (i % 2 === 1 || !isHidden(j, keys));
          const problem = { q, k, v: wholeNumbers(keys, 4), causal, sees };
          expectEqualWeights(attention, problem, ['output', 'lse', 'gradV'], dtype, open());
        }
      }
    });
  });
}
