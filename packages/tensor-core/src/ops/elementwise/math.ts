import { type DType, floatingPoint, isFloatingPoint } from '../../base/dtype.ts';
import { DTypeError } from '../../base/errors.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { add, div, mul, neg } from './arithmetic.ts';
import { binary, unary } from '../support/pointwise.ts';
import { less } from './comparisons.ts';
import { where } from './where.ts';
import { onePlusExpMinus, onePlusXTimesSigmoidMinus, sigmoidNode } from '../support/sigmoid-graph.ts';

/** e^x. */
export const exp = unary({
  name: 'exp',
  autocast: 'float32',
  dtype: floatingPoint,
  expression: 'exp(a)',
  onnx: (graph, a) => graph.node('Exp', [a]),
  reads: 'output',
  gradient: (g, y) => mul(g, y),
});

/** The natural logarithm. */
export const log: (x: Tensor) => Tensor = unary({
  name: 'log',
  autocast: 'float32',
  dtype: floatingPoint,
  expression: 'log(a)',
  onnx: (graph, a) => graph.node('Log', [a]),
  reads: 'input',
  gradient: (g, x) => div(g, x),
});

/** The square root of each element; NaN of negative ones. */
export const sqrt = unary({
  name: 'sqrt',
  dtype: floatingPoint,
  expression: 'sqrt(a)',
  onnx: (graph, a) => graph.node('Sqrt', [a]),
  reads: 'output',
  gradient: (g, y) => div(mul(g, 0.5), y),
});

/** 1 / √x. */
export const rsqrt = unary({
  name: 'rsqrt',
  autocast: 'float32',
  dtype: floatingPoint,
  expression: 'rsqrt(a)',
  onnx: (graph, a) => graph.node('Reciprocal', [graph.node('Sqrt', [a])]),
  reads: 'output',
  gradient: (g, y) => rsqrtBackward(g, y),
});

// This and the gradients below are one op each: in low precision their factors would be rounded, lost or overflow.
const rsqrtBackward = binary({
  name: 'rsqrtBackward',
  autocast: 'none',
  expression: (g, y) => `${g} * -0.5f * (${y} * ${y} * ${y})`,
  onnx: (graph, g, y, result) => {
    const cube = graph.node('Mul', [graph.node('Mul', [y, y]), y]);
    return graph.node('Mul', [graph.node('Mul', [g, graph.scalar(g.dtype, -0.5)]), cube], {}, result);
  },
});

/** The sine of each element, in radians. */
export const sin = unary({
  name: 'sin',
  dtype: floatingPoint,
  expression: 'sin(a)',
  onnx: (graph, a) => graph.node('Sin', [a]),
  float64: Math.sin,
  reads: 'input',
  gradient: (g, x) => mul(g, cos(x)),
});

/** The cosine of each element, in radians. */
export const cos: (x: Tensor) => Tensor = unary({
  name: 'cos',
  dtype: floatingPoint,
  expression: 'cos(a)',
  onnx: (graph, a) => graph.node('Cos', [a]),
  float64: Math.cos,
  reads: 'input',
  gradient: (g, x) => neg(mul(g, sin(x))),
});

/** The hyperbolic tangent of each element. */
export const tanh = unary({
  name: 'tanh',
  dtype: floatingPoint,
  expression: 'tanh(a)',
  onnx: (graph, a) => graph.node('Tanh', [a]),
  float64: Math.tanh,
  reads: 'output',
  gradient: (g, y) => tanhBackward(g, y),
});

const tanhBackward = binary({
  name: 'tanhBackward',
  autocast: 'none',
  expression: (g, y) => `${g} * (1 - ${y} * ${y})`,
  onnx: (graph, g, y, result) => {
    const slope = graph.node('Sub', [graph.scalar(y.dtype, 1), graph.node('Mul', [y, y])], {}, y);
    return graph.node('Mul', [g, slope], {}, result);
  },
});

/** 1 / (1 + e^-x), also where e^-x overflows: sigmoid(-100) is 3.8e-44. */
export const sigmoid = unary({
  name: 'sigmoid',
  dtype: floatingPoint,
  expression: 'a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a))',
  onnx: (graph, a) => sigmoidNode(graph, a),
  reads: 'output',
  gradient: (g, y) => sigmoidBackward(g, y),
  flops: 4,
  // By e^-|x|, which never overflows: an infinite exponential would make the gradient NaN.
  reference: (x) => {
    const isNegative = less(x, 0);
    const e = exp(where(isNegative, x, neg(x)));
    return div(where(isNegative, e, 1), add(e, 1));
  },
});

const sigmoidBackward = binary({
  name: 'sigmoidBackward',
  autocast: 'none',
  expression: (g, y) => `${g} * (${y} * (1 - ${y}))`,
  onnx: (graph, g, y, result) => {
    const slope = graph.node('Mul', [y, graph.node('Sub', [graph.scalar(y.dtype, 1), y], {}, y)]);
    return graph.node('Mul', [g, slope], {}, result);
  },
});

/** max(x, 0); NaN stays. Throws a DTypeError for bools. */
export const relu = unary({
  name: 'relu',
  dtype: (dtype: DType) => {
    if (dtype === 'bool') throw new DTypeError('relu: bools are never below 0; cast() to numbers.');
    return dtype;
  },
  expression: 'a < 0 ? 0 : a',
  onnx: (graph, a) =>
    isFloatingPoint(a.dtype) ? graph.node('Relu', [a]) : graph.node('Max', [a, graph.scalar(a.dtype, 0)]),
  reads: 'output',
  gradient: (g, y) => reluBackward(g, y),
});

/** g where the output is not 0; nothing is multiplied, so that no Infinity or NaN of g comes through elsewhere. */
const reluBackward = binary({
  name: 'reluBackward',
  expression: (g, y) => `${y} <= 0 ? 0 : ${g}`,
  onnx: (graph, g, y, result) => {
    const zero = graph.scalar(y.dtype, 0);
    const isMasked = graph.node('LessOrEqual', [y, zero], {}, { dtype: 'bool' });
    return graph.node('Where', [isMasked, zero, g], {}, result);
  },
});

/**
 * x · sigmoid(x), also called swish (Elfwing et al. 2017). As in PyTorch it is x / (1 + e^-x), and 0 where e^-x overflows: of
 * float32 below -88.7, where it is smaller than 3e-37.
 */
export const silu = unary({
  name: 'silu',
  dtype: floatingPoint,
  expression: 'a / (1 + exp(-a))',
  onnx: (graph, a) => graph.node('Div', [a, onePlusExpMinus(graph, a)]),
  reads: 'input',
  gradient: (g, x) => siluBackward(g, x),
  flops: 5,
  reference: (x) => mul(x, sigmoid(x)),
});

/** g · σ(x) · (1 + x·σ(-x)). */
const siluBackward = binary({
  name: 'siluBackward',
  autocast: 'none',
  expression: (g, x) => `${g} / (1 + exp(-${x})) * (1 + ${x} / (1 + exp(${x})))`,
  onnx: (graph, g, x, result) => {
    const scaled = graph.node('Div', [g, onePlusExpMinus(graph, x)], {}, result);
    return graph.node('Mul', [scaled, onePlusXTimesSigmoidMinus(graph, x)], {}, result);
  },
});
