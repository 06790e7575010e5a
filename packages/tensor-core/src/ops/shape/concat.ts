import { applyOne } from '../../op/apply.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import { byteSize, promote } from '../../base/dtype.ts';
import { ShapeError } from '../../base/errors.ts';
import { defineOp } from '../../op/op.ts';
import { zeros } from '../creation/from-values.ts';
import { formatShape, normalizeDimension, sameShape } from '../../base/shape.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { slice, unsqueeze } from './views.ts';

interface ConcatAttributes {
  readonly dimension: number;
}

const concatOp = defineOp<ConcatAttributes>({
  name: 'concat',
  autocast: 'promote',
  infer: (inputs, { dimension }) => {
    const first = leadingOf(inputs);
    const shape = [...first.shape];
    shape[dimension] = 0;
    for (const input of inputs) {
      if (isSkipped(input)) continue;
      const fits =
        input.shape.length === shape.length &&
        input.shape.every((length, i) => i === dimension || length === shape[i]);
      if (!fits) {
        throw new ShapeError(
          `concat: ${formatShape(input.shape)} does not fit behind ${formatShape(first.shape)}: ` +
            `all lengths but that of dimension ${dimension} must be equal.`,
        );
      }
      shape[dimension] += input.shape[dimension]!;
    }
    return [{ shape, dtype: first.dtype }];
  },
  gradient: ({ gradients, needs, inputSpecs, attributes: { dimension } }) => {
    let start = 0;
    return inputSpecs.map((input, i) => {
      const { shape } = input;
      if (isSkipped(input))
        return needs[i] ? zeros([0], { dtype: gradients[0]!.dtype, device: gradients[0]!.device }) : null;
      const from = start;
      start += shape[dimension]!;
      return needs[i] ? slice(gradients[0]!, dimension, from, start) : null;
    });
  },
  cuda: {
    kind: 'custom',
    strided: true,
    launch(context, inputs, [output], { dimension }) {
      const { dtype, strides } = output!;
      let address = output!.address;
      for (const input of inputs) {
        const { shape } = input;
        if (isSkipped(input)) continue;
        context.copy(
          { address: input.address, dtype, shape, strides: input.strides },
          { address, dtype, shape, strides },
        );
        address += shape[dimension]! * strides[dimension]! * byteSize(dtype);
      }
    },
  },
  cpu: {
    kind: 'onnx',
    build: (graph, inputs, { dimension }, { outputs }) => {
      const { shape } = outputs[0]!;
      const joined = inputs.filter((input) => shape.length === 1 || !isSkipped(input));
      return [graph.node('Concat', joined, { axis: dimension }, { shape })];
    },
  },
});

/** Whether `x` has the shape [0], which fits every other, as in torch.cat: to start a list with. */
function isSkipped({ shape }: TensorSpec): boolean {
  return shape.length === 1 && shape[0] === 0;
}

/** The input whose shape the others must have. */
function leadingOf<T extends TensorSpec>(inputs: readonly T[]): T {
  return inputs.find((input) => !isSkipped(input)) ?? inputs[0]!;
}

/**
 * Joins tensors along a dimension that they already have, in the promoted dtype; one of shape [0] fits all others, as in
 * torch.cat. Throws a ShapeError.
 */
export function concat(tensors: readonly Tensor[], dimension = 0, ...rest: []): Tensor {
  refuseMore('concat', rest);
  const first = checkTensors('concat', tensors);
  const dtype = tensors.reduce((promoted, tensor) => promote(promoted, tensor.dtype), first.dtype);
  const attributes = { dimension: normalizeDimension('concat', dimension, leadingOf(tensors).rank) };
  return scope(() =>
    applyOne(
      concatOp,
      tensors.map((tensor) => cast(tensor, dtype)),
      attributes,
    ),
  );
}

/** Joins tensors of one shape along a new dimension, in the promoted dtype. Throws a ShapeError. */
export function stack(tensors: readonly Tensor[], dimension = 0, ...rest: []): Tensor {
  refuseMore('stack', rest);
  const first = checkTensors('stack', tensors);
  const dim = normalizeDimension('stack', dimension, first.rank + 1);
  for (const { shape } of tensors) {
    if (sameShape(shape, first.shape)) continue;
    throw new ShapeError(
      `stack: ${formatShape(first.shape)} and ${formatShape(shape)} differ; all tensors must be of one shape.`,
    );
  }
  return scope(() =>
    concat(
      tensors.map((tensor) => unsqueeze(tensor, dim)),
      dim,
    ),
  );
}

/** Checks the list, and returns its first tensor. */
function checkTensors(op: string, tensors: readonly Tensor[]): Tensor {
  if (!Array.isArray(tensors) || tensors.length === 0) {
    throw new ShapeError(`${op}: takes a list of at least one tensor.`);
  }
  for (const tensor of tensors) requireTensor(op, tensor);
  return tensors[0]!;
}
