import type { Graph } from '../graph/graph.ts';
import { mergeInputGradients, mergeWeightGradients } from './merge-gradients.ts';
import { mergeProjections } from './merge-projections.ts';

/**
 * Makes one product of float16 and bfloat16 products that share an operand: projections of one activation, such as queries,
 * keys and values, or SwiGLU's two; the gradient of that activation, a sum of products; and the gradients of the weights. What
 * they do not share moves into a joint storage: rows of weights one after the other, columns of activations side by side. A
 * weight's cast then writes its part of the joint weights, and each part can still be read on its own.
 *
 * Sums have the same terms as before; cublasLt may add them in another order, and the gradient of an activation is rounded
 * once instead of once per product.
 */
export function mergeProducts(graph: Graph): Graph {
  return mergeWeightGradients(mergeInputGradients(mergeProjections(graph)));
}
