import { CompileError } from '../../base/errors.ts';
import { formatShape, sameShape } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Operand } from './graph.ts';
import type { Trace } from '../trace/trace.ts';
import { type TouchedGradient, fillsStorage } from '../trace/traced-gradients.ts';

/** The gradient that a leaf has after a run; a null operand is none. */
export interface GradientResult {
  readonly leaf: Tensor;
  readonly operand: Operand | null;
  /** Whether the function disposed of the gradient that it found, rather than leaving it to its holders. */
  readonly disposes: boolean;
}

function operandOfGradient(trace: Trace, grad: Tensor): Operand {
  if (!grad.isDisposed) return trace.operand(grad);
  const maker = trace.writerOf(grad.storage);
  throw new CompileError(
    `compile: the gradient of a leaf ${formatShape(grad.shape)} was freed with what else the function made` +
      `${maker ? `, a result of the op ${maker.call.op.name}` : ''}; keep() it.`,
  );
}

/** The gradients that a function has replaced. Throws a CompileError for a new one that its scope has freed. */
export function gradientResults(trace: Trace): GradientResult[] {
  return trace.gradients.touched
    .filter(({ leaf, before }) => leaf.grad !== before)
    .map(({ leaf, before }) => ({
      leaf,
      operand: leaf.grad && operandOfGradient(trace, leaf.grad),
      disposes: before !== null && before.isDisposed,
    }));
}

/** Whether a leaf's gradient is as the function found it: there or not, its layout and place, its buffer and hooks. */
export function hasSuchGradient({ leaf, before, buffer, hooks, within }: TouchedGradient): boolean {
  const { grad } = leaf;
  const { gradientHooks } = leaf;
  if (gradientHooks.length !== hooks.length || leaf.gradientBuffer !== buffer) return false;
  if (gradientHooks.some((hook, i) => hook !== hooks[i])) return false;
  if (before === null || grad === null) return before === grad;
  const isLike = before.dtype === grad.dtype && before.device === grad.device;
  if (!isLike || !sameShape(before.shape, grad.shape)) return false;
  if (!within) return fillsStorage(grad);
  return grad.storage === within && grad.offset === before.offset && sameShape(before.strides, grad.strides);
}
