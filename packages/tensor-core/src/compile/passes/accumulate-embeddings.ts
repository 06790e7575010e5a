import type { CustomKernel } from '../../op/cuda-lowering.ts';
import { addInPlaceOp } from '../../ops/copy/in-place.ts';
import {
  type EmbeddingBackwardAttributes,
  embeddingBackwardOp,
  launchEmbeddingBackward,
} from '../../ops/index/embedding.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { isOp } from './is-op.ts';
import { fusedCall } from './fused-ops.ts';
import { areDisjoint, isSameOperand, leaveAsIs, usesOf } from './operands.ts';

/**
 * Where the gradient of an embedding table is only added to another gradient, adds it directly to the rows that were looked
 * up, in place of the sum: for a head that shares its weight with the embeddings, or gradients of several batches. No table
 * of zeros is written, and none added. Results are the same bits, except that a -0 or a NaN in other rows stays as it is,
 * where 0 would have been added.
 */
export function accumulateEmbeddings(graph: Graph): Graph {
  const uses = usesOf(graph.calls);
  const left = new Set<Call>();
  const calls = graph.calls.map((sum, at) => {
    const maker = gradientIn(graph, uses, sum);
    if (!maker) return sum;
    const between = graph.calls.slice(graph.calls.indexOf(maker) + 1, at);
    if (!leaveAsIs(between, maker.inputs)) return sum;
    left.add(maker);
    return accumulatingCall(maker, sum);
  });
  return left.size === 0 ? graph : { ...graph, calls: calls.filter((_, i) => !left.has(graph.calls[i]!)) };
}

/** The call that makes a table's gradient that only `sum` reads, to add it to something else. */
function gradientIn(graph: Graph, uses: ReadonlyMap<number, readonly Call[]>, sum: Call): Call | null {
  if (!isOp(sum.op, addInPlaceOp) || sum.live !== null) return null;
  const [total, added] = sum.inputs as readonly [Operand, Operand];
  if (!isIntermediate(graph, added.storage)) return null;
  const [maker, reader, ...others] = uses.get(added.storage)!;
  if (!maker || reader !== sum || others.length > 0 || !isOp(maker.op, embeddingBackwardOp)) return null;
  const isWhole = maker.live === null && isSameOperand(maker.outputs[0]!, added);
  const isPlain = total.isContiguous && total.dtype === added.dtype;
  return isWhole && isPlain && maker.inputs.every((input) => areDisjoint(input, total)) ? maker : null;
}

function accumulatingCall(maker: Call, sum: Call): Call {
  const [total] = sum.outputs as readonly [Operand];
  const attributes = maker.attributes as EmbeddingBackwardAttributes;
  const cuda: CustomKernel<undefined> = {
    kind: 'custom',
    launch: (context, [dy, ids], [dweight]) =>
      launchEmbeddingBackward(context, [dy!, ids!], dweight!, attributes, { adds: true }),
  };
  return fusedCall([maker, sum], [...maker.inputs, total], [total], { cuda });
}
