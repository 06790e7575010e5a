import { refuseMore } from '../../op/require-tensor.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { equal } from './comparisons.ts';
import { type Operand, checkOperands, unary } from '../support/pointwise.ts';

/** !x of a bool tensor. */
export const logicalNot = unary({
  name: 'logicalNot',
  dtype: () => 'bool',
  expression: '!a',
  onnx: (graph, a) => graph.node('Not', [graph.cast(a, 'bool')]),
});

/** a ≠ b, element by element with broadcasting; the result is bool. */
export function notEqual(a: Operand, b: Operand, ...rest: []): Tensor {
  refuseMore('notEqual', rest);
  checkOperands('notEqual', a, b);
  return scope(() => logicalNot(equal(a, b)));
}
