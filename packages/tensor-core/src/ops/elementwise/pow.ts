import { refuseMore } from '../../op/require-tensor.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import { computeDType, isFloatingPoint } from '../../base/dtype.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { type Operand, binary } from '../support/pointwise.ts';
import { unlessZero } from '../support/unless-zero.ts';
import { cast } from '../copy/cast.ts';
import { mul } from './arithmetic.ts';
import { integerPow } from './integer-pow.ts';

const floatingPointPow = binary({
  name: 'pow',
  autocast: 'float32',
  expression: (a, b) => `power(${a}, ${b})`,
  onnx: 'Pow',
  gradients: [
    { reads: ['a', 'b'], rule: ({ g, a, b }) => mul(g, slopeByBase(wide(a), wide(b))) },
    { reads: ['a', 'b'], rule: ({ g, a, b }) => mul(g, slopeByExponent(wide(a), wide(b))) },
  ],
});

/**
 * a to the power b, with broadcasting. Integers are exact, modulo 2^32 or 2^64. At a = 0 the gradients are PyTorch's:
 * for a it is 0 if b is 0, for b it is 0 if b is not negative. Throws a DTypeError for a negative integer number as the
 * exponent of integers, and for two bools.
 */
export function pow(a: Operand, b: Operand, ...rest: []): Tensor {
  refuseMore('pow', rest);
  return isInteger(a) && isInteger(b) ? integerPow(a, b) : floatingPointPow(a, b);
}

/** Low precision as float32: in low precision a slope could overflow, although its product with a small gradient does not. */
function wide(x: Operand): Operand {
  return typeof x === 'number' ? x : cast(x, computeDType([x.dtype], []));
}

function isInteger(x: Operand | undefined): boolean {
  if (typeof x === 'number') return Number.isInteger(x);
  return x?.dtype !== undefined && !isFloatingPoint(x.dtype);
}

/**
 * d(a^b)/da = b · a^(b - 1), and 0 for b = 0. For a negative base and a fractional exponent it is NaN as the power is, even if
 * b - 1 rounds to a whole number.
 */
const slopeByBase = binary({
  name: 'powSlopeByBase',
  expression: (a, b) =>
    `${b} == 0 ? 0 : ${a} < 0 && ${a} - ${a} == 0 && floor(${b}) != ${b} ? power(${a}, ${b}) ` +
    `: ${b} * power(${a}, ${b} - 1)`,
  onnx: (graph, a, b, result) => {
    const lower = graph.node('Sub', [b, graph.scalar(b.dtype, 1)]);
    const slope = graph.node('Mul', [b, graph.node('Pow', [a, lower], {}, result)], {}, result);
    return unlessZero(graph, b, orNaN(graph, a, b, slope, result), result);
  },
});

/** `slope`, but NaN where a is negative and finite and b is a fraction. */
function orNaN(
  graph: OnnxGraph,
  a: OnnxValue,
  b: OnnxValue,
  slope: OnnxValue,
  result: TensorSpec,
): OnnxValue {
  const test = (opType: string, x: OnnxValue, y: OnnxValue) =>
    graph.node(opType, [x, y], {}, { dtype: 'bool' });
  const negative = test('Less', a, graph.scalar(a.dtype, 0));
  const finite = test('Greater', a, graph.scalar(a.dtype, -Infinity));
  const fraction = test('Less', graph.node('Floor', [b]), b);
  const undefinedHere = [finite, fraction].reduce(
    (both, condition) => graph.node('And', [both, condition], {}, { ...result, dtype: 'bool' }),
    negative,
  );
  return graph.node('Where', [undefinedHere, graph.scalar(slope.dtype, NaN), slope], {}, result);
}

/** d(a^b)/db = a^b · log(a), and 0 for a = 0 with b >= 0, where the function is constant in b except at b = 0. */
const slopeByExponent = binary({
  name: 'powSlopeByExponent',
  expression: (a, b) => `${a} == 0 && ${b} >= 0 ? 0 : power(${a}, ${b}) * log(${a})`,
  onnx: (graph, a, b, result) => {
    const zero = graph.scalar(result.dtype, 0);
    const isNotNegative = graph.node('GreaterOrEqual', [b, zero], {}, { dtype: 'bool' });
    const power = graph.node('Pow', [a, b], {}, result);
    const slope = graph.node('Mul', [power, graph.node('Log', [a])], {}, result);
    return graph.node('Where', [isNotNegative, unlessZero(graph, a, slope, result), slope], {}, result);
  },
});
