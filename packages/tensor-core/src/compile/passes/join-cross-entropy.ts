import { isDeepStrictEqual } from 'node:util';
import type { CustomKernel } from '../../op/cuda-lowering.ts';
import { type FillAttributes, fillOp } from '../../ops/copy/in-place.ts';
import { crossEntropyBackwardOp, crossEntropyOp } from '../../ops/nn/cross-entropy.ts';
import { launchJointCrossEntropy } from '../../ops/nn/joint-cross-entropy.ts';
import { byteSize } from '../../base/dtype.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { isCast, isOp } from './is-op.ts';
import { fusedCall } from './fused-ops.ts';
import { areDisjoint, areIndependent, isSameOperand, leaveAsIs, usesOf } from './operands.ts';

type Uses = ReadonlyMap<number, readonly Call[]>;

/** The call that fills the one element that a gradient is multiplied by, and its number. */
interface Filling {
  readonly call: Call;
  readonly value: number;
}

/**
 * Makes one call of a cross entropy and the gradient of its logits, which reads the logits once and writes no statistics of
 * rows. It runs where the gradient did, after what that is multiplied by; if that is only a number filled in, such as the 1
 * that `backward` starts with, the kernel gets the number. A cast of the logits only for the loss, and a cast of the gradient
 * that alone reads it, are done by the kernel, too. Results are the same bits.
 */
export function joinCrossEntropy(graph: Graph): Graph {
  let { calls } = graph;
  for (const forward of graph.calls) {
    if (isOp(forward.op, crossEntropyOp)) calls = joined({ ...graph, calls }, forward) ?? calls;
  }
  return calls === graph.calls ? graph : { ...graph, calls };
}

/** The calls with `forward` and its gradient joined; null where they cannot be. */
function joined(graph: Graph, forward: Call): readonly Call[] | null {
  const uses = usesOf(graph.calls);
  const backward = gradientOf(graph, uses, forward);
  if (!backward) return null;
  const [from, to] = [graph.calls.indexOf(forward), graph.calls.indexOf(backward)];
  const between = graph.calls.slice(from + 1, to);
  // Calls that depend on the loss move after the joint call.
  const dependent: Call[] = [forward];
  const before = between.filter((call) => {
    const mayPass = dependent.every((other) => areIndependent(call, other));
    if (!mayPass) dependent.push(call);
    return mayPass;
  });
  const late = dependent.slice(1);
  if (!late.every((call) => areIndependent(call, backward))) return null;
  const filling = fillingOf(graph, uses, backward);
  const widening = wideningOf(graph, uses, forward, backward);
  const narrowing = narrowingOf(graph, uses, backward);
  const left = new Set([forward, backward, filling?.call, widening, narrowing]);
  const joint = jointCall({ forward, backward, filling, widening, narrowing });
  const calls = [...graph.calls.slice(0, from), ...before, joint, ...late, ...graph.calls.slice(to + 1)];
  return calls.filter((call) => !left.has(call));
}

/** The gradient of a loss, if it is the only reader of the loss's statistics. */
function gradientOf(graph: Graph, uses: Uses, forward: Call): Call | null {
  const [loss, ...statistics] = forward.outputs as readonly [Operand, ...Operand[]];
  const users = statistics.map(({ storage }) => uses.get(storage)!);
  const backward = users[0]![1];
  const isTheirs = users.every((calls) => calls.length === 2 && calls[1] === backward);
  if (!backward || !isTheirs || !isOp(backward.op, crossEntropyBackwardOp)) return null;
  const [dloss, ...read] = backward.inputs as readonly [Operand, ...Operand[]];
  const isOfForward = [...forward.inputs, ...statistics].every((operand, i) =>
    isSameOperand(operand, read[i]!),
  );
  const isAlike = isDeepStrictEqual(forward.attributes, backward.attributes);
  const isApart = leaveAsIs([backward], [...forward.inputs, loss]);
  const areFreed = statistics.every(({ storage }) => isIntermediate(graph, storage));
  return isOfForward && isAlike && isApart && areFreed && areDisjoint(dloss, loss) ? backward : null;
}

/** What the gradient is multiplied by, if that is a number filled in for it alone. */
function fillingOf(graph: Graph, uses: Uses, backward: Call): Filling | null {
  const { storage } = backward.inputs[0]!;
  const [call, reader, ...others] = uses.get(storage)!;
  if (reader !== backward || others.length > 0 || !isIntermediate(graph, storage)) return null;
  if (!call || !isOp(call.op, fillOp) || call.live !== null) return null;
  return { call, value: (call.attributes as FillAttributes).value };
}

/** The cast of low-precision logits that only the loss and its gradient read, if it can be dropped. */
function wideningOf(graph: Graph, uses: Uses, forward: Call, backward: Call): Call | null {
  const [logits] = forward.inputs as readonly [Operand];
  const [cast, ...readers] = uses.get(logits.storage)!;
  if (!cast || readers.length !== 2 || !isCastOfAll(graph, cast, logits, 'outputs')) return null;
  // The gradient may be multiplied by one of the logits.
  if (backward.inputs[0]!.storage === logits.storage) return null;
  const [from] = cast.inputs as readonly [Operand];
  const { calls } = graph;
  const later = calls.slice(calls.indexOf(cast) + 1, calls.indexOf(backward));
  return byteSize(from.dtype) === 2 && leaveAsIs(later, [from]) ? cast : null;
}

/** The cast to low precision that is the only reader of the logits' gradient, if it can run as early as that. */
function narrowingOf(graph: Graph, uses: Uses, backward: Call): Call | null {
  const [dlogits] = backward.outputs as readonly [Operand];
  const [, cast, ...others] = uses.get(dlogits.storage)!;
  if (!cast || others.length > 0 || !isCastOfAll(graph, cast, dlogits, 'inputs')) return null;
  const { calls } = graph;
  const between = calls.slice(calls.indexOf(backward) + 1, calls.indexOf(cast));
  const isEarly = between.every((call) => areIndependent(call, cast));
  return byteSize(cast.outputs[0]!.dtype) === 2 && isEarly ? cast : null;
}

/** Whether a call casts all of `wide`, a float32 intermediate, from or to another dtype. */
function isCastOfAll(
  graph: Graph,
  { op, inputs, outputs, live }: Call,
  wide: Operand,
  side: 'inputs' | 'outputs',
): boolean {
  if (!isCast(op) || live !== null || wide.dtype !== 'float32') return false;
  const own = { inputs, outputs }[side][0]!;
  const isSame = own.storage === wide.storage && own.offset === wide.offset && own.size === wide.size;
  const areDense = [wide, ...inputs, ...outputs].every(({ isContiguous }) => isContiguous);
  return isSame && areDense && isIntermediate(graph, wide.storage) && wide.size > 0;
}

interface Joint {
  readonly forward: Call;
  readonly backward: Call;
  readonly filling: Filling | null;
  readonly widening: Call | null;
  readonly narrowing: Call | null;
}

function jointCall({ forward, backward, filling, widening, narrowing }: Joint): Call {
  const [loss] = forward.outputs as readonly [Operand];
  const [dloss, wide, targets] = backward.inputs as readonly [Operand, Operand, Operand];
  const as = ({ shape, strides }: Operand, operand: Operand): Operand => ({ ...operand, shape, strides });
  const logits = widening ? as(wide, widening.inputs[0]!) : wide;
  const gradient = backward.outputs[0]!;
  const dlogits = narrowing ? as(gradient, narrowing.outputs[0]!) : gradient;
  const attributes = { ...(forward.attributes as { readonly ignoreIndex: number }), dtype: wide.dtype };
  const cuda: CustomKernel<undefined> = {
    kind: 'custom',
    launch(context, inputs, outputs) {
      const above = filling ? { value: filling.value } : { memory: inputs[2]! };
      launchJointCrossEntropy(context, above, inputs, outputs, attributes);
    },
  };
  const members = [widening, forward, filling?.call, backward, narrowing].filter((call) => call != null);
  const inputs = [logits, targets, ...(filling ? [] : [dloss])];
  return { ...fusedCall(members, inputs, [loss, dlogits], { cuda }), range: backward.range };
}
