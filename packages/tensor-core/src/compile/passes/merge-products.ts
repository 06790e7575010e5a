import type { Graph } from '../graph/graph.ts';
import { mergeInputGradients, mergeWeightGradients } from './merge-gradients.ts';
import { mergeProjections } from './merge-projections.ts';

/**
 * A program in which float16 and bfloat16 products that share an operand are one product: projections of one activation,
 * such as queries, keys and values, or both of SwiGLU's; the gradient of that activation, a sum of products; and the
 * gradients of the weights. What they do not share comes to lie side by side in a joint storage: rows of weights, columns of
 * activations. A weight's cast then writes its part of the joint weights, whose parts stay readable by themselves.
 *
 * Sums have the same terms as before; cublasLt may add them in another order, and the gradient of an activation is rounded
 * once and not once a product.
 */
export function mergeProducts(graph: Graph): Graph {
  return mergeWeightGradients(mergeInputGradients(mergeProjections(graph)));
}
