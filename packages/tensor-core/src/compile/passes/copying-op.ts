import { bytesOf, costOf } from '../../op/cost.ts';
import type { CustomKernel } from '../../op/cuda-lowering.ts';
import type { LowPrecisionCopies } from '../../op/kernel-rewrites.ts';
import type { ComputeOp } from '../../op/op.ts';
import type { Call, Operand } from '../graph/graph.ts';
import { rewritesOf } from './rewrites-of.ts';

/** A call without the copies that it writes, and these copies: one for each output that can have one, null for none. */
interface WithoutCopies {
  readonly call: Call;
  readonly copies: readonly (Operand | null)[];
}

/** For an op that also writes copies: the op without them, and the indices of the outputs that have one. */
interface CopyingOp {
  readonly op: ComputeOp<never>;
  readonly places: readonly number[];
}

const copyingOps = new WeakMap<ComputeOp<never>, CopyingOp>();

/** How many outputs, the first ones, `op` can write copies of. */
export function copiedOutputs(op: ComputeOp<never>): number {
  return rewritesOf({ op }).copied ?? 0;
}

/** `call`, also writing these copies of its first outputs, null for none. */
export function withCopies(call: Call, copies: readonly (Operand | null)[]): Call {
  const placed = copies.flatMap((copy, place) => (copy ? [{ place, copy }] : []));
  if (placed.length === 0) return call;
  return {
    ...call,
    op: copyingOp(
      call.op,
      placed.map(({ place }) => place),
    ),
    outputs: [...call.outputs, ...placed.map(({ copy }) => copy)],
  };
}

/** The inverse of `withCopies`. */
export function withoutCopies(call: Call): WithoutCopies {
  const copies = new Array<Operand | null>(copiedOutputs(call.op)).fill(null);
  const copying = copyingOps.get(call.op);
  if (!copying) return { call, copies };
  const { op, places } = copying;
  const own = call.outputs.length - places.length;
  places.forEach((place, i) => (copies[place] = call.outputs[own + i]!));
  return { call: { ...call, op, outputs: call.outputs.slice(0, own) }, copies };
}

/** `op` with further outputs after its own: copies of those in `places`. */
function copyingOp(op: ComputeOp<never>, places: readonly number[]): ComputeOp<never> {
  const cuda = op.cuda as CustomKernel<never>;
  const ownCount = <T>(outputs: readonly T[]) => outputs.length - places.length;
  const launch: CustomKernel<never>['launch'] = (context, inputs, outputs, attributes) => {
    const own = ownCount(outputs);
    const copies = new Array<LowPrecisionCopies[number]>(copiedOutputs(op)).fill(null);
    places.forEach((place, i) => (copies[place] = outputs[own + i]!));
    cuda.launch(context, inputs, outputs.slice(0, own), attributes, { copies });
  };
  const copying: ComputeOp<never> = {
    ...op,
    cuda: { ...cuda, launch },
    cost(inputs, outputs, attributes) {
      const cost = costOf(op, inputs, outputs.slice(0, ownCount(outputs)), attributes);
      return { ...cost, bytesMoved: cost.bytesMoved + bytesOf(outputs.slice(ownCount(outputs))) };
    },
  };
  copyingOps.set(copying, { op, places });
  return copying;
}
