import { binary } from '../support/pointwise.ts';

const comparison = (name: string, operator: string, onnx: string) =>
  binary({
    name,
    dtype: () => 'bool',
    roundsFirst: true,
    expression: (a, b) => `${a} ${operator} ${b}`,
    onnx,
  });

/** Element-wise comparisons with broadcasting; the result is bool. */
export const equal = comparison('equal', '==', 'Equal');
export const less = comparison('less', '<', 'Less');
export const lessEqual = comparison('lessEqual', '<=', 'LessOrEqual');
export const greater = comparison('greater', '>', 'Greater');
export const greaterEqual = comparison('greaterEqual', '>=', 'GreaterOrEqual');
