import * as t from '../../src/index.ts';
import type { DType, Device, Tensor } from '../../src/index.ts';
import { unitRoundoff } from '../op-cases/support/samples.ts';

/** A matrix, its values without rounding, and the most that its rounded numbers can differ from them. */
interface Bounded {
  readonly rows: number;
  readonly columns: number;
  readonly dtype: DType;
  readonly exact: Float64Array;
  readonly bound: Float64Array;
}

/** Smallest positive numbers: rounding loses everything below them. */
const smallest: Partial<Record<DType, number>> = {
  float16: 2 ** -24,
  bfloat16: 2 ** -133,
  float32: 2 ** -149,
};
const unit = (dtype: DType) => unitRoundoff[dtype]!;

/** The result of a float32 computation, `error` away from `exact`, rounded to a dtype (Higham 2002, 2.2). */
function rounded(
  { rows, columns }: Pick<Bounded, 'rows' | 'columns'>,
  dtype: DType,
  exact: Float64Array,
  error: (i: number) => number,
): Bounded {
  const bound = exact.map((value, i) => {
    const own = error(i);
    return own + unit(dtype) * (Math.abs(value) + own) + smallest[dtype]!;
  });
  return { rows, columns, dtype, exact, bound };
}

/**
 * Steps of a chain. Each is an op on tensors together with a bound of its error, by running error analysis (Wilkinson 1971;
 * Higham 2002, 3.3): the errors of operands go through, and the rounding of the result to its dtype is added. Compiled code
 * that rounds less often, or adds in another order, is within the same bounds.
 */
export interface Step {
  readonly run: (values: readonly Tensor[]) => Tensor;
  readonly bound: (values: readonly Bounded[]) => Bounded;
}

type Pair = readonly [left: number, right: number];

/** x · yᵀ: a sum in float32 in any order, then a rounding. */
export function product([left, right]: Pair): Step {
  return {
    run: (values) => t.linear(values[left]!, values[right]!),
    bound: (values) => {
      const [x, y] = [values[left]!, values[right]!];
      const shape = { rows: x.rows, columns: y.rows };
      const exact = new Float64Array(x.rows * y.rows);
      const error = new Float64Array(exact.length);
      for (let i = 0; i < x.rows; i++) {
        for (let j = 0; j < y.rows; j++) {
          let [sum, passed, size] = [0, 0, 0];
          for (let k = 0; k < x.columns; k++) {
            const [p, q] = [i * x.columns + k, j * x.columns + k];
            const [a, b] = [Math.abs(x.exact[p]!), Math.abs(y.exact[q]!)];
            sum += x.exact[p]! * y.exact[q]!;
            passed += a * y.bound[q]! + x.bound[p]! * b + x.bound[p]! * y.bound[q]!;
            size += (a + x.bound[p]!) * (b + y.bound[q]!);
          }
          exact[i * y.rows + j] = sum;
          error[i * y.rows + j] = passed + 2 * x.columns * unit('float32') * size;
        }
      }
      return rounded(shape, x.dtype, exact, (i) => error[i]!);
    },
  };
}

function elementwise(
  [left, right]: Pair,
  run: (a: Tensor, b: Tensor) => Tensor,
  value: (a: number, b: number) => number,
  passed: (a: number, b: number, errorOfA: number, errorOfB: number) => number,
): Step {
  return {
    run: (values) => run(values[left]!, values[right]!),
    bound: (values) => {
      const [x, y] = [values[left]!, values[right]!];
      const exact = x.exact.map((a, i) => value(a, y.exact[i]!));
      const error = exact.map((_, i) => passed(x.exact[i]!, y.exact[i]!, x.bound[i]!, y.bound[i]!));
      // An addend in one sum with a product is rounded to float32 once more.
      const own = (i: number) => error[i]! + unit('float32') * (Math.abs(exact[i]!) + error[i]!);
      return rounded(x, x.dtype, exact, own);
    },
  };
}

export const sum = (pair: Pair): Step =>
  elementwise(
    pair,
    t.add,
    (a, b) => a + b,
    (_a, _b, e, f) => e + f,
  );

export const difference = (pair: Pair): Step =>
  elementwise(
    pair,
    t.sub,
    (a, b) => a - b,
    (_a, _b, e, f) => e + f,
  );

export const elementProduct = (pair: Pair): Step =>
  elementwise(
    pair,
    t.mul,
    (a, b) => a * b,
    (a, b, e, f) => Math.abs(a) * f + Math.abs(b) * e + e * f,
  );

/** A function of float32 within eight units of its value, whose slope is nowhere steeper. */
function smooth(
  at: number,
  run: (x: Tensor) => Tensor,
  value: (x: number) => number,
  steepest: number,
): Step {
  return elementwise(
    [at, at],
    (x) => run(x),
    (x) => value(x),
    (x, _x, error) => steepest * error + 8 * unit('float32') * Math.abs(value(x)),
  );
}

export const tanh = (at: number): Step => smooth(at, t.tanh, Math.tanh, 1);
export const relu = (at: number): Step => smooth(at, t.relu, (x) => Math.max(x, 0), 1);
export const sigmoid = (at: number): Step => smooth(at, t.sigmoid, (x) => 1 / (1 + Math.exp(-x)), 1 / 4);
// The slope of x · σ(x) is 1.0998 at x = 2.4.
export const silu = (at: number): Step => smooth(at, t.silu, (x) => x / (1 + Math.exp(-x)), 1.1);
/** x times a number that low precision cannot hold: it is not rounded. */
export const scaled = (at: number, by: number): Step =>
  smooth(
    at,
    (x) => t.mul(x, by),
    (x) => x * by,
    Math.abs(by),
  );

/** To float32 and back: two roundings, the first of which loses nothing. */
export const widened = (at: number, low: DType): Step => ({
  run: (values) => t.cast(t.mul(t.cast(values[at]!, 'float32'), 1.5), low),
  bound: (values) => scaled(at, 1.5).bound(values),
});

/** A transposed copy. */
export const turned = (at: number): Step => ({
  run: (values) => t.transpose(values[at]!),
  bound: (values) => {
    const x = values[at]!;
    const moved = (of: Float64Array) =>
      Float64Array.from(of, (_, i) => of[(i % x.rows) * x.columns + Math.floor(i / x.rows)]!);
    return { ...x, rows: x.columns, columns: x.rows, exact: moved(x.exact), bound: moved(x.bound) };
  },
});

/** A matrix as stored in memory, free of error. */
export function given(rows: number, columns: number, dtype: DType, value: (i: number) => number): Bounded {
  const exact = t.scope(() => {
    const list = Float64Array.from({ length: rows * columns }, (_, i) => value(i));
    return Float64Array.from(t.cast(t.fromTypedArray(list, [rows * columns]), dtype).toFlatArray());
  });
  return { rows, columns, dtype, exact, bound: new Float64Array(rows * columns) };
}

export function tensorOf({ rows, columns, dtype, exact }: Bounded, device: Device): Tensor {
  return t.cast(t.fromTypedArray(Float32Array.from(exact), [rows, columns]), dtype).to(device);
}

/** The worst of all errors, in units of its bound. */
export function worstError(values: readonly number[], { exact, bound }: Bounded): number {
  return values.reduce((worst, value, i) => {
    const error = Math.abs(value - exact[i]!);
    return Math.max(worst, error === 0 ? 0 : error / bound[i]!);
  }, 0);
}
