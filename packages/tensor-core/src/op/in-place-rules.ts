import { isGradEnabled } from '../tensor/tape/grad-mode.ts';
import { AutogradError, ShapeError } from '../base/errors.ts';
import { DeviceError } from '@roofline/cuda/host';
import { byteSize } from '../base/dtype.ts';
import { extentOf, overlapsItself } from '../tensor/storage/extent.ts';
import { shareElements, shareMemory } from '../tensor/storage/overlap.ts';
import type { Hold } from '../tensor/storage/storage.ts';
import { formatShape, sameShape } from '../base/shape.ts';
import type { Tensor } from '../tensor/tensor.ts';
import type { ComputeOp } from './op.ts';

/**
 * Throws unless `op` may write its mutated inputs: an AutogradError if the tape would miss the write, a ShapeError if elements
 * overlap, so that the result would depend on the order of writes, and a DeviceError if something under way, such as a
 * collective, works on the memory.
 */
export function checkInPlace(op: ComputeOp<never>, inputs: readonly Tensor[]): void {
  const mutates = op.mutates!;
  for (const input of inputs) input.assertAlive(op.name);
  for (let i = 0; i < mutates.length; i++) {
    const target = inputs[mutates[i]!]!;
    if (!target.isContiguous && overlapsItself(target)) throw writesOverItself(op.name, target);
    const hold = target.storage.holdsOn(extentOf(target)).find((each) => isHeldBy(each, target));
    if (hold) throw underWay(op.name, target, hold.holder);
  }
  if (inputs.length === 2 && mutates.length === 1) {
    checkPartialOverlap(op.name, inputs[mutates[0]!]!, inputs[1 - mutates[0]!]!);
  }
  if (!isGradEnabled()) return;
  for (let i = 0; i < mutates.length; i++) checkHistory(op, inputs[mutates[i]!]!, inputs);
}

/** PyTorch's rules, except that a tensor with other handles or views is refused, whose history PyTorch would update. */
function checkHistory(op: ComputeOp<never>, target: Tensor, inputs: readonly Tensor[]): void {
  const { name } = op;
  if (target.requiresGrad && target.isLeaf) {
    throw new AutogradError(
      `${name}: ${formatShape(target.shape)} is a leaf that requires a gradient; write to it inside noGrad(), as ` +
        'optimizers do.',
    );
  }
  if (!inputs.some((input) => input.requiresGrad)) return;
  if (!op.gradient) {
    throw new AutogradError(
      `${name}: is not recorded, so the gradient of ${formatShape(target.shape)} would be wrong; call it inside ` +
        'noGrad(), or detach() what requires a gradient.',
    );
  }
  if (target.storage.handles > 1) {
    throw new AutogradError(
      `${name}: ${formatShape(target.shape)} shares its memory with other handles or views, whose gradients would ` +
        'miss what is written; write to a copy(), or do without in-place writes.',
    );
  }
}

function checkPartialOverlap(op: string, target: Tensor, source: Tensor): void {
  if (target.storage !== source.storage || source === target) return;
  const isSame = target.offset === source.offset && sameShape(target.strides, source.strides);
  if (isSame || !shareMemory(target, source)) return;
  throw new ShapeError(
    `${op}: the source ${formatShape(source.shape)} shares memory with the target ${formatShape(target.shape)} in ` +
      'another layout, so elements could be read after they were written; copy() the source.',
  );
}

/** Whether a hold on a byte between a target's first and last element is on one of its elements. */
function isHeldBy({ region: { start, end } }: Hold, target: Tensor): boolean {
  if (target.isContiguous) return true;
  const bytes = byteSize(target.dtype);
  const offset = Math.floor(start / bytes);
  const held = { shape: [Math.ceil(end / bytes) - offset], strides: [1], offset };
  return shareElements(target, held) !== 'no';
}

function underWay(op: string, target: Tensor, holder: string): DeviceError {
  return new DeviceError(
    `${op}: cannot write to ${formatShape(target.shape)} while ${holder}, which is under way, works on it; wait for ` +
      'that first.',
  );
}

function writesOverItself(op: string, target: Tensor): ShapeError {
  return new ShapeError(
    `${op}: several elements of the target ${formatShape(target.shape)} with strides ${formatShape(target.strides)} ` +
      'lie at one place, as after expand(); write to a contiguous() copy.',
  );
}
