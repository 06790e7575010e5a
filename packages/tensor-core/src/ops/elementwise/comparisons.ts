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
/** Whether a < b, element by element; broadcasts, and gives bools. */
export const less = comparison('less', '<', 'Less');
/** Whether a ≤ b, element by element; broadcasts, and gives bools. */
export const lessEqual = comparison('lessEqual', '<=', 'LessOrEqual');
/** Whether a > b, element by element; broadcasts, and gives bools. */
export const greater = comparison('greater', '>', 'Greater');
/** Whether a ≥ b, element by element; broadcasts, and gives bools. */
export const greaterEqual = comparison('greaterEqual', '>=', 'GreaterOrEqual');
