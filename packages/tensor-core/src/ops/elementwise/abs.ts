import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import type { DType } from '../../base/dtype.ts';
import { zerosLike } from '../creation/from-values.ts';
import { DTypeError } from '../../base/errors.ts';
import { unary } from '../support/pointwise.ts';
import { mul } from './arithmetic.ts';

/**
 * |x|. NaN stays, and so does the smallest integer, which has no positive counterpart. The gradient at 0 is 0. Throws a
 * DTypeError for bool.
 */
export const abs = unary({
  name: 'abs',
  dtype: (dtype: DType) => {
    if (dtype === 'bool') throw new DTypeError('abs: a bool has no magnitude; cast() it first.');
    return dtype;
  },
  // 0 - a, because -a of 0 would be -0.
  expression: 'a > 0 ? a : 0 - a',
  onnx: (graph, a) => graph.node('Abs', [a]),
  reads: 'input',
  gradient: (g, x) => mul(g, sign(x)),
});

/** -1, 0 or 1 with the sign of x; 0 for NaN, as torch.sign. Its gradient is 0. */
export const sign = unary({
  name: 'sign',
  expression: '(a > 0) - (a < 0)',
  onnx: signNodes,
  gradient: (g) => zerosLike(g),
});

// ONNX's Sign passes NaN on.
function signNodes(graph: OnnxGraph, a: OnnxValue): OnnxValue {
  if (a.dtype === 'bool') return graph.node('Identity', [a]);
  const zero = graph.scalar(a.dtype, 0);
  const compared = (opType: string) =>
    graph.cast(graph.node(opType, [a, zero], {}, { dtype: 'bool' }), a.dtype);
  return graph.node('Sub', [compared('Greater'), compared('Less')]);
}
