import { checkNumber } from '@roofline/cuda/host';
import { requireTensor } from '../../op/require-tensor.ts';
import { DTypeError } from '../../base/errors.ts';
import { isFloatingPoint } from '../../base/dtype.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { div, mul } from '../elementwise/arithmetic.ts';
import { equal } from '../elementwise/comparisons.ts';
import { where } from '../elementwise/where.ts';
import { unary } from '../support/pointwise.ts';
import { float64Mean, squaredDistance } from './squared-distance.ts';
import { type ReductionOptions, checkReduction, foldedDims, reductionOptions } from './reductions.ts';

/** Options of `variance` and `std`. */
export interface VarianceOptions extends ReductionOptions {
  /** Subtracted from the number of elements in the divisor. Default 1, for the variance of a sample (Bessel). */
  correction?: number;
}

const knownOptions = [...reductionOptions, 'correction'];

/**
 * The variance over `dims`, all by default: the sum of the squared distances from the mean, divided by the number of elements
 * minus `correction`. Two passes (Chan et al. 1983) in float64, rounded at the end: a mean far from zero costs no digits, and
 * no square is too large or too small. NaN or Infinity for too few elements, as torch.var. Throws a DTypeError for integers.
 */
export function variance(x: Tensor, options: VarianceOptions = {}): Tensor {
  return scope(() => cast(float64Variance('var', x, options), x.dtype));
}

/** The square root of `variance`, even if that is beyond the dtype. Where it is 0 its gradient is 0, as in torch.std. */
export function std(x: Tensor, options: VarianceOptions = {}): Tensor {
  return scope(() => cast(rootOfVariance(float64Variance('std', x, options)), x.dtype));
}

function float64Variance(name: string, x: Tensor, options: VarianceOptions): Tensor {
  requireTensor(name, x);
  const { dims, keepDims = false, correction = 1 } = checkReduction(name, options, knownOptions);
  if (!isFloatingPoint(x.dtype)) {
    throw new DTypeError(`${name}: x must be floating-point, not ${x.dtype}; cast() it first.`);
  }
  checkNumber(name, 'the correction', correction);
  const folded = foldedDims(name, x, dims);
  // The mean does not contribute to the gradient, because the distances from it sum to zero.
  const mean = float64Mean(x.detach(), folded);
  const squares = squaredDistance(x, mean, { dims: folded, keepDims });
  const count = sizeOf(folded.map((dim) => x.shape[dim]!));
  return div(squares, Math.max(0, count - correction));
}

const rootOfVariance = unary({
  name: 'std',
  expression: 'sqrt(a)',
  onnx: (graph, a) => graph.node('Sqrt', [a]),
  reads: 'output',
  gradient: (g, y) => where(equal(y, 0), 0, div(mul(g, 0.5), y)),
});
