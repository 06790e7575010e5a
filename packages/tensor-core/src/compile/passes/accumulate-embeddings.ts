import type { CustomKernel } from '../../op/cuda-lowering.ts';
import { addInPlaceOp } from '../../ops/copy/in-place.ts';
import {
  type EmbeddingBackwardAttributes,
  embeddingBackwardOp,
  launchEmbeddingBackward,
} from '../../ops/index/embedding.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Program } from '../graph/program.ts';
import { isOp } from './is-op.ts';
import { fusedCall } from './fused-ops.ts';
import { areDisjoint, isSameOperand, leaveAsIs, usesOf } from './operands.ts';

/**
 * A program in which the gradient of a table whose rows were looked up, where it is only added to another gradient, is added
 * to the rows that were looked up, in the sum's place: a head that shares its weight with the embeddings, or gradients of
 * several batches. No table of zeros is written, and none added. Results are the same bits, but that a -0 or a NaN of
 * other rows stays as it is where a 0 would have been added.
 */
export function accumulateEmbeddings(program: Program): Program {
  const uses = usesOf(program.calls);
  const left = new Set<Call>();
  const calls = program.calls.map((sum, at) => {
    const maker = gradientIn(program, uses, sum);
    if (!maker) return sum;
    const between = program.calls.slice(program.calls.indexOf(maker) + 1, at);
    if (!leaveAsIs(between, maker.inputs)) return sum;
    left.add(maker);
    return accumulatingCall(maker, sum);
  });
  return left.size === 0
    ? program
    : { ...program, calls: calls.filter((_, i) => !left.has(program.calls[i]!)) };
}

/** The call that makes the gradient of a table which `sum` alone reads, adding it to something else. */
function gradientIn(program: Program, uses: ReadonlyMap<number, readonly Call[]>, sum: Call): Call | null {
  if (!isOp(sum.op, addInPlaceOp) || sum.live !== null) return null;
  const [total, added] = sum.inputs as readonly [Operand, Operand];
  if (!isIntermediate(program, added.storage)) return null;
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
