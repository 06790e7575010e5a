import {
  type Device,
  type Tensor,
  add,
  cast,
  layerNorm,
  mean,
  mul,
  noGrad,
  ones,
  rmsNorm,
  rsqrt,
  scope,
  sub,
  tensor,
  zeros,
} from '@roofline/tensor-core';
import { seededRandom } from '../../measuring/seeded-random.ts';
import type { LowDType, NormError } from './parameters.ts';

const rows = 32;
const width = 256;
const eps = 1e-5;
/** The mean of the inputs, and their standard deviation. */
const magnitudes = [1e-4, 1e-2, 1, 1e2, 1e4] as const;

type Values = Record<'squares' | 'statistics' | 'output', Float64Array>;

/**
 * How far the parts of both norms are off in a low dtype, for inputs of several magnitudes: each of squares, statistics and output
 * calculated from the rounded input by ops of that dtype alone, and the output again with its statistics in float32, as the ops of
 * norms have them. An error is ‖y - exact‖ / ‖exact‖ against float64, and NaN where a value overflows.
 */
export function normErrors(device: Device, dtype: LowDType, seed: number): NormError[] {
  return magnitudes.flatMap((magnitude) =>
    noGrad(() =>
      scope(() => {
        const x = cast(tensor(inputs(magnitude, seed), { device }), dtype);
        const given = read(x);
        return (['LayerNorm', 'RMSNorm'] as const).flatMap((norm) => {
          const exact = exactly(given, norm);
          const low = inDType(x, norm);
          const op =
            norm === 'LayerNorm' ? withFloat32Statistics.layerNorm(x) : withFloat32Statistics.rmsNorm(x);
          const error = (part: NormError['part'], y: Tensor, of: Float64Array): NormError => ({
            ...{ norm, part, magnitude },
            offBy: relativeError(read(y), of),
          });
          return [
            error('squares', low.squares, exact.squares),
            error('statistics', low.statistics, exact.statistics),
            error('output', low.output, exact.output),
            error('output, statistics in float32', op, exact.output),
          ];
        });
      }),
    ),
  );
}

const weightOf = (x: Tensor) => ones([width], { device: x.device, dtype: x.dtype });
const withFloat32Statistics = {
  layerNorm: (x: Tensor) =>
    layerNorm(x, weightOf(x), zeros([width], { device: x.device, dtype: x.dtype }), eps),
  rmsNorm: (x: Tensor) => rmsNorm(x, weightOf(x), eps),
};

/** Each op in the dtype of x: its result is rounded before the next one reads it. */
function inDType(x: Tensor, norm: NormError['norm']): Record<keyof Values, Tensor> {
  const last = { dims: -1, keepDims: true } as const;
  const centered = norm === 'LayerNorm' ? sub(x, mean(x, last)) : x;
  const squares = mul(centered, centered);
  const statistics = rsqrt(add(mean(squares, last), eps));
  return { squares, statistics, output: mul(centered, statistics) };
}

/** The same in float64. */
function exactly(x: Float64Array, norm: NormError['norm']): Values {
  const values: Values = {
    squares: new Float64Array(x.length),
    statistics: new Float64Array(rows),
    output: new Float64Array(x.length),
  };
  for (let row = 0; row < rows; row++) {
    const of = x.subarray(row * width, (row + 1) * width);
    const center = norm === 'LayerNorm' ? average(of) : 0;
    const squares = of.map((value) => (value - center) ** 2);
    const reciprocal = 1 / Math.sqrt(average(squares) + eps);
    values.squares.set(squares, row * width);
    values.statistics[row] = reciprocal;
    values.output.set(
      of.map((value) => (value - center) * reciprocal),
      row * width,
    );
  }
  return values;
}

/** Rows of normal numbers around `magnitude`, which spread by it too. */
function inputs(magnitude: number, seed: number): number[][] {
  const random = seededRandom(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Array.from({ length: rows }, () => Array.from({ length: width }, () => magnitude * (1 + normal())));
}

function read(x: Tensor): Float64Array {
  return Float64Array.from(cast(x, 'float32').toTypedArray() as Float32Array);
}

function relativeError(y: Float64Array, exact: Float64Array): number {
  const norm = (values: Float64Array) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  const error = norm(y.map((value, index) => value - exact[index]!)) / norm(exact);
  return Number.isFinite(error) ? error : NaN;
}

function average(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
