import { matmulOp } from '../../ops/matrix/matmul.ts';
import type { ExecutableFacts } from '../executable/executable.ts';
import type { Call, Graph } from '../graph/graph.ts';
import { isAccumulation } from './accumulate-products.ts';
import { isOp } from './is-op.ts';
import { productsInUpdate } from './update-by-products.ts';

/** What passes made of a graph's matrix products. */
export type ProductFacts = Pick<
  ExecutableFacts,
  'accumulatedProducts' | 'mergedProducts' | 'operandBytesSaved' | 'multipliedGradients'
>;

/** From the graph before and after the passes. */
export function productFacts(before: Graph, after: Graph): ProductFacts {
  const [eager, compiled] = [productsOf(before), productsOf(after)];
  const updates = after.calls.flatMap(productsInUpdate);
  return {
    accumulatedProducts: compiled.filter(isAccumulation).length,
    mergedProducts: eager.length - compiled.length - updates.length,
    operandBytesSaved: operandBytes(eager) - operandBytes(compiled) - operandBytes(updates),
    multipliedGradients: updates.length,
  };
}

type Product = Pick<Call, 'inputs'>;

function productsOf({ calls }: Graph): Call[] {
  return calls.filter((call) => isOp(call.op, matmulOp) || isAccumulation(call));
}

function operandBytes(products: readonly Product[]): number {
  return products.reduce((sum, { inputs: [a, b] }) => sum + a!.byteLength + b!.byteLength, 0);
}
