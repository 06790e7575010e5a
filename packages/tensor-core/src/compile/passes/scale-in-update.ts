import type { InPlaceScaling } from '../../op/kernel-rewrites.ts';
import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph } from '../graph/graph.ts';
import { gpuOp } from './gpu-op.ts';
import { isSameOperand } from './operands.ts';
import {
  type Update,
  addNumbers,
  hoistCoefficients,
  partialUpdate,
  updateOf,
  updatedBy,
} from './partial-update.ts';
import { Rewrite } from './rewrite.ts';
import { rewritesOf } from './rewrites-of.ts';

/**
 * Lets optimizers multiply gradients by a factor as they read them, in place of a call that multiplies all of them in memory
 * first, as clipping by the norm does. Products are rounded to float32 as in memory, so results are the same bits. Where
 * something else reads the products, or they outlive the run, they are multiplied as before.
 */
export function scaleInUpdate(graph: Graph): Graph {
  const rewrite = new Rewrite(graph);
  for (const call of graph.calls) {
    const scaling = rewritesOf(call).scales;
    const updates = scaling && updatesByAll(rewrite, call);
    if (!updates) continue;
    const factor = addNumbers(rewrite, 1);
    rewrite.replace(call, factorCall(call, scaling, factor));
    for (const [place, update] of updates) {
      const coefficients = hoistCoefficients(rewrite, update);
      rewrite.replace(graph.calls[place]!, partialUpdate(update, update.tensors, { coefficients, factor }));
    }
  }
  return rewrite.finish();
}

/** A call that writes the factor by which `call` would multiply. */
function factorCall(call: Call, scaling: InPlaceScaling<never>, factor: Operand): Call {
  const op = gpuOp(`${call.op.name}_factor`, (context, shared, [memory], attributes) =>
    scaling.factor(context, shared, memory!, attributes),
  );
  return { ...call, op, inputs: call.inputs.slice(call.outputs.length), outputs: [factor] };
}

/**
 * By place, the updates that read the products of `call`; null if anything else reads them, if one of the updates also uses
 * other gradients, or if the products outlive the run.
 */
function updatesByAll(rewrite: Rewrite, call: Call): Map<number, Update> | null {
  const scaled = Map.groupBy(call.outputs, ({ storage }) => storage);
  const isScaled = (operand: Operand) =>
    scaled.get(operand.storage)?.some((product) => isSameOperand(product, operand)) ?? false;
  const updates = new Map<number, Update>();
  for (const storage of scaled.keys()) {
    if (!isIntermediate(rewrite.graph, storage)) return null;
    for (const reader of rewrite.uses.get(storage)!) {
      const place = rewrite.placeOf(reader);
      if (place <= rewrite.placeOf(call) || updates.has(place)) continue;
      const update = rewrite.isFree([reader], []) ? updateOf(reader) : null;
      if (!update || !isUpdateBy(update, scaled, isScaled)) return null;
      updates.set(place, update);
    }
  }
  return updates.size > 0 ? updates : null;
}

/** Whether an update uses only products as gradients, and does not use their storages otherwise. */
function isUpdateBy(
  update: Update,
  scaled: ReadonlyMap<number, readonly Operand[]>,
  isScaled: (operand: Operand) => boolean,
): boolean {
  const isElsewhere = ({ storage }: Operand) => !scaled.has(storage);
  return (
    update.shared.every(isElsewhere) &&
    update.tensors.every(
      (tensor) =>
        updatedBy(update, tensor).every(isScaled) &&
        tensor.outputs.every(isElsewhere) &&
        (tensor.copy === null || isElsewhere(tensor.copy)),
    )
  );
}
