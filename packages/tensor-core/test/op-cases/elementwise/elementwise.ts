import * as t from '../../../src/index.ts';
import type { Operand, Tensor } from '../../../src/index.ts';

/** An element-wise op with its meaning in JavaScript's float64. */
export interface ElementwiseCase {
  readonly name: string;
  readonly fn: (...inputs: Tensor[]) => Tensor;
  readonly reference: (...values: number[]) => number;
  /** The intervals that the inputs are drawn from, one for each. */
  readonly domain: readonly (readonly [number, number])[];
  readonly differentiable: boolean;
}

const anywhere = [-3, 3] as const;
const positive = [0.3, 4] as const;
const nonzero = [0.5, 3] as const;

export const oneInput = (
  name: string,
  fn: (x: Tensor) => Tensor,
  reference: (x: number) => number,
  domain: readonly [number, number] = anywhere,
): ElementwiseCase => ({ name, fn, reference, domain: [domain], differentiable: true });

type BinaryFunction = (a: Operand, b: Operand) => Tensor;

/** A binary op between two tensors, and with a number on either side. */
const twoInputs = (
  name: string,
  fn: BinaryFunction,
  reference: (a: number, b: number) => number,
  [a, b]: readonly (readonly [number, number])[] = [anywhere, anywhere],
  differentiable = true,
): ElementwiseCase[] => [
  { name, fn, reference, domain: [a!, b!], differentiable },
  {
    name: `${name} number`,
    fn: (x) => fn(x!, 1.75),
    reference: (x) => reference(x, 1.75),
    domain: [a!],
    differentiable,
  },
  {
    name: `number ${name}`,
    fn: (x) => fn(1.75, x!),
    reference: (x) => reference(1.75, x),
    domain: [b!],
    differentiable,
  },
];

// Abramowitz & Stegun 7.1.6, the series of the error function whose terms are of one sign.
function erf(x: number): number {
  let [sum, term] = [0, x];
  for (let n = 0; n < 80; n++) {
    sum += term;
    term *= (2 * x * x) / (2 * n + 3);
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

export const elementwiseCases: readonly ElementwiseCase[] = [
  ...twoInputs('add', t.add, (a, b) => a + b),
  ...twoInputs('sub', t.sub, (a, b) => a - b),
  ...twoInputs('mul', t.mul, (a, b) => a * b),
  ...twoInputs('div', t.div, (a, b) => a / b, [anywhere, nonzero]),
  ...twoInputs('pow', t.pow, (a, b) => a ** b, [positive, anywhere]),
  ...twoInputs('maximum', t.maximum, (a, b) => Math.max(a, b)),
  ...twoInputs('minimum', t.minimum, (a, b) => Math.min(a, b)),
  ...twoInputs('equal', t.equal, (a, b) => Number(a === b), undefined, false),
  ...twoInputs('notEqual', t.notEqual, (a, b) => Number(a !== b), undefined, false),
  ...twoInputs('less', t.less, (a, b) => Number(a < b), undefined, false),
  ...twoInputs('lessEqual', t.lessEqual, (a, b) => Number(a <= b), undefined, false),
  ...twoInputs('greater', t.greater, (a, b) => Number(a > b), undefined, false),
  ...twoInputs('greaterEqual', t.greaterEqual, (a, b) => Number(a >= b), undefined, false),
  oneInput('neg', t.neg, (x) => -x),
  oneInput('exp', t.exp, Math.exp),
  oneInput('log', t.log, Math.log, positive),
  oneInput('sqrt', t.sqrt, Math.sqrt, positive),
  oneInput('rsqrt', t.rsqrt, (x) => 1 / Math.sqrt(x), positive),
  oneInput('sin', t.sin, Math.sin),
  oneInput('cos', t.cos, Math.cos),
  oneInput('tanh', t.tanh, Math.tanh),
  oneInput('sigmoid', t.sigmoid, sigmoid),
  oneInput('silu', t.silu, (x) => x * sigmoid(x)),
  oneInput('gelu', t.gelu, (x) => 0.5 * x * (1 + erf(x / Math.SQRT2))),
  oneInput(
    'gelu by tanh',
    (x) => t.gelu(x, { approximate: 'tanh' }),
    (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  ),
  oneInput('relu', t.relu, (x) => Math.max(x, 0)),
  oneInput('abs', t.abs, Math.abs),
  oneInput('sign', t.sign, Math.sign),
  oneInput(
    'clamp',
    (x) => t.clamp(x, { min: -1.25, max: 1.75 }),
    (x) => Math.min(Math.max(x, -1.25), 1.75),
  ),
  oneInput(
    'clamp from below',
    (x) => t.clamp(x, { min: -0.5 }),
    (x) => Math.max(x, -0.5),
  ),
  oneInput(
    'clamp from above',
    (x) => t.clamp(x, { max: 0.5 }),
    (x) => Math.min(x, 0.5),
  ),
  {
    name: 'clamp by a tensor',
    fn: (x, bound) => t.clamp(x!, { min: -1, max: bound! }),
    reference: (x, bound) => Math.min(Math.max(x, -1), bound),
    domain: [anywhere, anywhere],
    differentiable: true,
  },
  {
    name: 'where',
    fn: (a, b) => t.where(t.greater(a!, 0), a!, b!),
    reference: (a, b) => (a > 0 ? a : b),
    domain: [anywhere, anywhere],
    differentiable: true,
  },
  {
    name: 'where with a number',
    fn: (a) => t.where(t.greater(a!, 0), a!, -1.5),
    reference: (a) => (a > 0 ? a : -1.5),
    domain: [anywhere],
    differentiable: true,
  },
];
