import { isGradEnabled } from '../../tensor/tape/grad-mode.ts';
import { CompileError } from '../../base/errors.ts';
import { formatShape } from '../../base/shape.ts';
import { Tensor } from '../../tensor/tensor.ts';
import type { GradientResult } from './gradient-results.ts';
import type { Operand, Graph } from './graph.ts';
import type { Trace } from '../trace/trace.ts';
import { isHandedOver } from '../trace/traced.ts';
import { mapInstances } from '../trace/values.ts';

/** Stands for a tensor in a function's result. */
export class Slot {
  readonly operand: Operand;
  /** The tensor itself if the function found it outside, such as a parameter; null for one that it made. */
  readonly found: Tensor | null;
  /** Whether the function called `keep` on it. */
  readonly isKept: boolean;

  constructor(operand: Operand, found: Tensor | null, isKept: boolean) {
    this.operand = operand;
    this.found = found;
    this.isKept = isKept;
  }
}

/**
 * A function's result with slots in place of its tensors, and these slots in order. Throws a CompileError for a tensor that
 * a replay could not give.
 */
export function resultSlots(
  trace: Trace,
  result: unknown,
): { readonly template: unknown; readonly slots: readonly Slot[] } {
  // A gradient that is also a result belongs to its leaf.
  const gradients = new Set(trace.gradients.touched.map(({ leaf }) => leaf.grad));
  const slots: Slot[] = [];
  const template = mapInstances(result, Tensor, (x) => {
    const slot = slotOf(trace, x, gradients.has(x));
    slots.push(slot);
    return slot;
  });
  return { template, slots };
}

function slotOf(trace: Trace, x: Tensor, isGradient: boolean): Slot {
  x.assertAlive('compile: the result');
  const operand = trace.operand(x);
  const isFound = trace.storages[operand.storage]!.source.kind === 'captured' && !isHandedOver(x);
  if (x.requiresGrad) refuseGradient(trace, x, isFound);
  return new Slot(operand, isFound ? x : null, x.scope === null && !isGradient);
}

function refuseGradient(trace: Trace, x: Tensor, isFound: boolean): void {
  if (x.isLeaf && !isFound) {
    throw new CompileError(
      `compile: the result ${formatShape(x.shape)} is a leaf that requires a gradient, and that of a replay would not; return ` +
        'detach() of it, and its gradient beside it.',
    );
  }
  // Inside noGrad() it has a history if it was found with one, or if the function made it inside enableGrad().
  if (x.isLeaf || (isFound && !isGradEnabled())) return;
  const maker = trace.writerOf(x.storage);
  throw new CompileError(
    `compile: the result ${formatShape(x.shape)}${maker ? ` of the op ${maker.call.op.name}` : ''} has a history, and a ` +
      'replay records none: call backward() inside the compiled function, or run it in noGrad(), or return detach() of it.',
  );
}

/**
 * The operands of results and gradients that are copied after a run, so that the caller gets new tensors as in the first
 * call: arguments, which the caller already has; constants, which belong to the graph; and results that are also gradients,
 * because the next run may write those again.
 */
export function copiedOperands(
  { storages, gradients }: Graph,
  slots: readonly Slot[],
  gradientResults: readonly GradientResult[],
): Operand[] {
  const isOthers = ({ storage }: Operand) => {
    const { kind } = storages[storage]!.source;
    return kind === 'argument' || kind === 'constant';
  };
  const results = slots.flatMap(({ operand, found }) => (found ? [] : [operand]));
  return [
    ...results.filter((operand) => isOthers(operand) || gradients.has(operand.storage)),
    ...gradientResults.flatMap(({ operand }) => (operand && isOthers(operand) ? [operand] : [])),
  ];
}
