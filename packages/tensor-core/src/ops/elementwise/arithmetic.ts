import { floatingPoint } from '../../tensor/dtype.ts';
import { type Operand, binary, unary } from '../support/pointwise.ts';
import { equal, greater } from './comparisons.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** a + b, with broadcasting. */
export const add = binary({
  name: 'add',
  expression: (a, b) => `${a} + ${b}`,
  onnx: 'Add',
  gradients: [
    { reads: [], rule: ({ g }) => g },
    { reads: [], rule: ({ g }) => g },
  ],
});

/** a - b, with broadcasting. */
export const sub = binary({
  name: 'sub',
  expression: (a, b) => `${a} - ${b}`,
  onnx: 'Sub',
  gradients: [
    { reads: [], rule: ({ g }) => g },
    { reads: [], rule: ({ g }) => neg(g) },
  ],
});

/** a · b element by element, with broadcasting. */
export const mul = binary({
  name: 'mul',
  expression: (a, b) => `${a} * ${b}`,
  onnx: 'Mul',
  gradients: [
    { reads: ['b'], rule: ({ g, b }) => mul(g, b) },
    { reads: ['a'], rule: ({ g, a }) => mul(g, a) },
  ],
});

/** a / b, with broadcasting; of integers in float32. */
export const div = binary({
  name: 'div',
  dtype: floatingPoint,
  expression: (a, b) => `${a} / ${b}`,
  onnx: 'Div',
  gradients: [
    { reads: ['b'], rule: ({ g, b }) => div(g, b) },
    { reads: ['b', 'output'], rule: ({ g, b, output }) => neg(div(mul(g, output), b)) },
  ],
});

/** -x. */
export const neg = unary({
  name: 'neg',
  expression: '-a',
  onnx: (graph, a) => graph.node('Neg', [a]),
  gradient: (g) => neg(g),
});

/** The larger of a and b, element by element; NaN wins. Where they are equal, each takes half the gradient. */
export const maximum = binary({
  name: 'maximum',
  expression: (a, b) => `larger(${a}, ${b})`,
  onnx: 'Max',
  gradients: [
    { reads: ['a', 'b'], rule: ({ g, a, b }) => mul(g, share(a, b)) },
    { reads: ['a', 'b'], rule: ({ g, a, b }) => mul(g, share(b, a)) },
  ],
});

/** The smaller of a and b, element by element; NaN wins. Where they are equal, each takes half the gradient. */
export const minimum = binary({
  name: 'minimum',
  expression: (a, b) => `smaller(${a}, ${b})`,
  onnx: 'Min',
  gradients: [
    { reads: ['a', 'b'], rule: ({ g, a, b }) => mul(g, share(b, a)) },
    { reads: ['a', 'b'], rule: ({ g, a, b }) => mul(g, share(a, b)) },
  ],
});

// 1 where a > b, a half where they are equal, else 0.
function share(a: Operand, b: Operand): Tensor {
  return add(greater(a, b), mul(equal(a, b), 0.5));
}
