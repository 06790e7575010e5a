import { refuseMore } from '../../op/require-tensor.ts';
import { DTypeError } from '../../base/errors.ts';
import { type DType, floatingPoint } from '../../base/dtype.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { type Operand, binary, unary } from '../support/pointwise.ts';
import { unlessZero } from '../support/unless-zero.ts';

/** a + b, with broadcasting; "or" for two bools. */
export const add = binary({
  name: 'add',
  expression: (a, b) => `${a} + ${b}`,
  onnx: 'Add',
  onnxOfBools: 'Or',
  gradients: [
    { reads: [], rule: ({ g }) => g },
    { reads: [], rule: ({ g }) => g },
  ],
});

const subtract = binary({
  name: 'sub',
  expression: (a, b) => `${a} - ${b}`,
  onnx: 'Sub',
  gradients: [
    { reads: [], rule: ({ g }) => g },
    { reads: [], rule: ({ g }) => neg(g) },
  ],
});

/** a - b, with broadcasting. Throws a DTypeError for a bool tensor, as PyTorch does. */
export function sub(a: Operand, b: Operand, ...rest: []): Tensor {
  refuseMore('sub', rest);
  if (isBool(a) || isBool(b)) {
    throw new DTypeError(
      'sub: there is no difference of bools; use notEqual() or logicalNot(), or cast() to numbers.',
    );
  }
  return subtract(a, b);
}

function isBool(x: Operand | undefined): boolean {
  return typeof x !== 'number' && x?.dtype === 'bool';
}

/** a · b element by element, with broadcasting; "and" for two bools. */
export const mul = binary({
  name: 'mul',
  expression: (a, b) => `${a} * ${b}`,
  onnx: 'Mul',
  onnxOfBools: 'And',
  gradients: [
    { reads: ['b'], rule: ({ g, b }) => mul(g, b) },
    { reads: ['a'], rule: ({ g, a }) => mul(g, a) },
  ],
});

/** a / b, with broadcasting; integers in float32. */
export const div = binary({
  name: 'div',
  // Like PyTorch's number / tensor, which is a product with the reciprocal.
  autocastAfterNumber: 'float32',
  dtype: floatingPoint,
  expression: (a, b) => `${a} / ${b}`,
  onnx: 'Div',
  gradients: [
    { reads: ['b'], rule: ({ g, b }) => div(g, b) },
    { reads: ['b', 'output'], rule: ({ g, b, output }) => neg(mul(g, div(output, b))) },
  ],
});

/** -x. Throws a DTypeError for bools. */
export const neg = unary({
  name: 'neg',
  dtype: (dtype: DType) => {
    if (dtype === 'bool') throw new DTypeError('neg: a bool has no sign; use logicalNot().');
    return dtype;
  },
  expression: '-a',
  onnx: (graph, a) => graph.node('Neg', [a]),
  gradient: (g) => neg(g),
});

/**
 * The larger of a and b, element by element; NaN wins. Where they are equal, each takes half the gradient, and where
 * one is NaN, both take all of it, as torch.maximum.
 */
export const maximum = binary({
  name: 'maximum',
  expression: (a, b) => `larger(${a}, ${b})`,
  onnx: 'Max',
  onnxOfBools: 'Or',
  gradients: [
    { reads: ['a', 'b'], rule: ({ g, a, b }) => maskedProduct(g, maximumSlope(a, b)) },
    { reads: ['a', 'b'], rule: ({ g, a, b }) => maskedProduct(g, maximumSlope(b, a)) },
  ],
});

/** The smaller of a and b, element by element; NaN wins. Gradients are shared as in `maximum`. */
export const minimum = binary({
  name: 'minimum',
  expression: (a, b) => `smaller(${a}, ${b})`,
  onnx: 'Min',
  onnxOfBools: 'And',
  gradients: [
    { reads: ['a', 'b'], rule: ({ g, a, b }) => maskedProduct(g, maximumSlope(b, a)) },
    { reads: ['a', 'b'], rule: ({ g, a, b }) => maskedProduct(g, maximumSlope(a, b)) },
  ],
});

/** The derivative of max(a, b) with respect to a: 0 where a < b, a half where they are equal, otherwise 1. */
const maximumSlope = binary({
  name: 'maximumSlope',
  dtype: floatingPoint,
  roundsFirst: true,
  expression: (a, b) => `${a} < ${b} ? 0 : ${a} == ${b} ? 0.5f : 1`,
  onnx: (graph, a, b, result) => {
    const compared = (operator: string) =>
      graph.node(operator, [a, b], {}, { shape: result.shape, dtype: 'bool' });
    const [zero, half, one] = [0, 0.5, 1].map((value) => graph.scalar(result.dtype, value));
    const slope = graph.node('Where', [compared('Equal'), half!, one!], {}, result);
    return graph.node('Where', [compared('Less'), zero!, slope], {}, result);
  },
});

/** g · slope, but 0 where the slope is 0, even if g is Infinity or NaN. */
const maskedProduct = binary({
  name: 'maskedProduct',
  expression: (g, slope) => `${slope} == 0 ? 0 : ${g} * ${slope}`,
  onnx: (graph, g, slope, result) =>
    unlessZero(graph, slope, graph.node('Mul', [g, slope], {}, result), result),
});
