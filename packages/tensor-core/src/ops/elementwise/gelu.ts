import { RooflineError, checkOptions, describeValue } from '@roofline/cuda/host';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { computeDType, floatingPoint } from '../../base/dtype.ts';
import { refuseMore } from '../../op/require-tensor.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { normalCdf as float64NormalCdf } from '../../tensor/random/normal-cdf.ts';
import { cast } from '../copy/cast.ts';
import { add, mul } from './arithmetic.ts';
import { binary, unary } from '../support/pointwise.ts';
import { exp, tanh } from './math.ts';
import { onePlusExpMinus } from '../support/sigmoid-graph.ts';

const inverseSqrt2Pi = 1 / Math.sqrt(2 * Math.PI);

/** e^(-x²/2) / √(2π). */
function normalDensity(x: Tensor): Tensor {
  return mul(exp(mul(mul(x, x), -0.5)), inverseSqrt2Pi);
}

const exactGelu = unary({
  name: 'gelu',
  dtype: floatingPoint,
  expression: 'a * normcdf(a)',
  onnx: (graph, a) => graph.node('Mul', [a, normalCdfNode(graph, a)]),
  float64: (a) => a * float64NormalCdf(a),
  reads: 'input',
  gradient: (g, x) => {
    const wide = cast(x, computeDType([x.dtype], []));
    return mul(g, add(normalCdf(wide), mul(wide, normalDensity(wide))));
  },
  flops: 8,
  reference: (x) => mul(x, normalCdf(x)),
});

// Φ(x) = (1 + erf(x/√2)) / 2; far below 0 its error is one rounding of 1, as in PyTorch on the CPU.
function normalCdfNode(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const erf = graph.node('Erf', [graph.node('Mul', [x, graph.scalar(x.dtype, Math.SQRT1_2)])]);
  return graph.node('Mul', [graph.node('Add', [erf, graph.scalar(x.dtype, 1)]), graph.scalar(x.dtype, 0.5)]);
}

const normalCdf: (x: Tensor) => Tensor = unary({
  name: 'normalCdf',
  dtype: floatingPoint,
  expression: 'normcdf(a)',
  onnx: normalCdfNode,
  float64: float64NormalCdf,
  reads: 'input',
  gradient: (g, x) => mul(g, normalDensity(x)),
  flops: 8,
});

// x · σ(z) with z = 2 √(2/π) (x + 0.044715 x³), which is x (1 + tanh(z/2)) / 2 without its cancellation below 0.
const linearPart = 2 * Math.sqrt(2 / Math.PI);
const cubicPart = 0.044715 * linearPart;

/** Literals of the operand's own type: a double would make float32's arithmetic that of float64. */
const cudaZ = (x: string) => {
  const literal = (value: number) => `static_cast<decltype(${x} + ${x})>(${value})`;
  return {
    z: `(${x} * (${literal(linearPart)} + ${literal(cubicPart)} * ${x} * ${x}))`,
    slope: `(${literal(linearPart)} + ${literal(3 * cubicPart)} * ${x} * ${x})`,
  };
};

/** x² · factor + linearPart. */
function quadratic(graph: OnnxGraph, x: OnnxValue, factor: number): OnnxValue {
  const square = graph.node('Mul', [graph.node('Mul', [x, x]), graph.scalar(x.dtype, factor)]);
  return graph.node('Add', [square, graph.scalar(x.dtype, linearPart)]);
}

const zNode = (graph: OnnxGraph, x: OnnxValue) => graph.node('Mul', [x, quadratic(graph, x, cubicPart)]);

const tanhGelu = unary({
  name: 'geluTanh',
  dtype: floatingPoint,
  expression: `a / (1 + exp(-${cudaZ('a').z}))`,
  onnx: (graph, a) => graph.node('Div', [a, onePlusExpMinus(graph, zNode(graph, a))]),
  reads: 'input',
  gradient: (g, x) => tanhGeluBackward(g, x),
  flops: 9,
  reference: (x) => {
    const z = mul(x, add(mul(mul(x, x), cubicPart), linearPart));
    return mul(mul(x, 0.5), add(tanh(mul(z, 0.5)), 1));
  },
});

/** g · σ(z) · (1 + x · z' · σ(-z)). */
const tanhGeluBackward = binary({
  name: 'geluTanhBackward',
  autocast: 'none',
  expression: (g, x) => {
    const { z, slope } = cudaZ(x);
    return `${g} / (1 + exp(-${z})) * (1 + ${x} * ${slope} / (1 + exp(${z})))`;
  },
  onnx: (graph, g, x, result) => {
    const z = zNode(graph, x);
    const scaled = graph.node('Div', [g, onePlusExpMinus(graph, z)], {}, result);
    const one = graph.scalar(x.dtype, 1);
    const steep = graph.node('Mul', [x, quadratic(graph, x, 3 * cubicPart)]);
    const onePlusExp = graph.node('Add', [graph.node('Exp', [z]), one]);
    const rest = graph.node('Add', [graph.node('Div', [steep, onePlusExp]), one]);
    return graph.node('Mul', [scaled, rest], {}, result);
  },
});

/** Options of `gelu`. */
export interface GeluOptions {
  /**
   * `none` is x · Φ(x) by the error function; `tanh` x · (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, which GPT-2 was trained with.
   * Default `none`.
   */
  readonly approximate?: 'none' | 'tanh';
}

/**
 * x · Φ(x) (Hendrycks & Gimpel 2016), exactly or by its approximation. Throws a RooflineError (code OPTION) for another
 * `approximate`.
 */
export function gelu(x: Tensor, options: GeluOptions = {}, ...rest: []): Tensor {
  refuseMore('gelu', rest);
  checkOptions('gelu', options, ['approximate']);
  const { approximate = 'none' } = options;
  if (approximate === 'none') return exactGelu(x);
  if (approximate === 'tanh') return tanhGelu(x);
  throw new RooflineError(
    'OPTION',
    `gelu: approximate must be none or tanh, not ${describeValue(approximate)}.`,
  );
}
