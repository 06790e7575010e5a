import { requireTensors } from '../../op/require-tensor.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import { applyOne } from '../../op/apply.ts';
import { RooflineError, checkOptions } from '@roofline/cuda/host';
import { bytesOf } from '../../op/cost.ts';
import { type GradientContext, defineOp } from '../../op/op.ts';
import {
  type DType,
  checkElement,
  computeDType,
  promote,
  promoteWithNumber,
  resultType,
} from '../../base/dtype.ts';
import { DTypeError } from '../../base/errors.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { type Shape, broadcastShapes, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import type { Operand } from '../support/pointwise.ts';
import { greater, greaterEqual, less, lessEqual } from './comparisons.ts';
import { where } from './where.ts';

/** A bound: a number, one of the inputs after x, or none. */
type Bound = number | 'tensor' | null;

interface ClampAttributes {
  readonly min: Bound;
  readonly max: Bound;
}

/** The bounds' names in a kernel: inputs b and c, scalars s0 and s1, in order; null for none. */
function namesOf({ min, max }: ClampAttributes): [string | null, string | null] {
  let [input, scalar] = [0, 0];
  const name = (bound: Bound) =>
    bound === null ? null : bound === 'tensor' ? 'bc'[input++]! : `s${scalar++}`;
  return [name(min), name(max)];
}

function shapeOf(inputs: readonly TensorSpec[]): Shape {
  return inputs.reduce<Shape>((shape, input) => broadcastShapes('clamp', shape, input.shape), []);
}

/** torch.result_type of all operands: tensors with dimensions come before those without, and these before numbers. */
function dtypeOf(tensors: readonly TensorSpec[], { min, max }: ClampAttributes): DType {
  const promoted = (group: readonly TensorSpec[]) => group.map(({ dtype }) => dtype).reduce(promote);
  const scalars = tensors.filter(({ shape }) => shape.length === 0);
  const others = tensors.filter(({ shape }) => shape.length > 0);
  const ofTensors =
    scalars.length > 0 && others.length > 0
      ? resultType({ dtype: promoted(scalars), shape: [] }, { dtype: promoted(others), shape: [1] })
      : promoted(tensors);
  const dtype = [min, max].reduce<DType>(
    (result, bound) => (typeof bound === 'number' ? promoteWithNumber(result, bound) : result),
    ofTensors,
  );
  if (dtype === 'bool') throw new DTypeError('clamp: bools have no order; cast() them first.');
  return dtype;
}

/** The tensors are of one dtype. */
const clampOp = defineOp<ClampAttributes>({
  name: 'clamp',
  autocast: 'promote',
  infer: (inputs) => [{ shape: shapeOf(inputs), dtype: inputs[0]!.dtype }],
  saves: (needs) => ({ inputs: [...needs.keys()] }),
  gradient: clampGradient,
  scalars: ({ min, max }) => [min, max].filter((bound) => typeof bound === 'number'),
  variant: (attributes) => namesOf(attributes).join(),
  cost: (inputs, outputs, { min, max }) => ({
    flops: sizeOf(outputs[0]!.shape) * [min, max].filter((bound) => bound !== null).length,
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'pointwise',
    expressions: (attributes) => {
      const [low, high] = namesOf(attributes);
      const raised = low === null ? 'a' : `larger(a, ${low})`;
      return [high === null ? raised : `smaller(${raised}, ${high})`];
    },
  },
  cpu: {
    kind: 'onnx',
    build: (graph, [x, ...bounds], attributes, { scalars, outputs }) => {
      const { shape } = outputs[0]!;
      const dtype = computeDType([x!.dtype], [outputs[0]!.dtype]);
      const [low, high] = namesOf(attributes).map((name) => {
        if (name === null) return null;
        return graph.cast(name[0] === 's' ? scalars[Number(name[1])]! : bounds['bc'.indexOf(name)]!, dtype);
      });
      let y = graph.cast(x!, dtype);
      if (low) y = graph.node('Max', [y, low], {}, { shape, dtype });
      if (high) y = graph.node('Min', [y, high], {}, { shape, dtype });
      return [y];
    },
  },
});

/**
 * x gets the gradient where it is within the bounds or on them; a bound that is a tensor gets it where it replaces x. The
 * upper bound wins where they cross.
 */
function clampGradient({
  gradients,
  input,
  needs,
  attributes: { min, max },
}: GradientContext<ClampAttributes>): (Tensor | null)[] {
  const g = gradients[0]!;
  const x = input(0);
  let next = 1;
  const indexOf = (bound: Bound) => (bound === 'tensor' ? next++ : null);
  const [minIndex, maxIndex] = [indexOf(min), indexOf(max)];
  const operandOf = (bound: Bound, index: number | null): Operand | null =>
    index === null ? (bound as number | null) : input(index);
  const [low, high] = [operandOf(min, minIndex), operandOf(max, maxIndex)];

  const results: (Tensor | null)[] = needs.map(() => null);
  if (needs[0]) {
    const below = high === null ? g : where(lessEqual(x, high), g, 0);
    results[0] = low === null ? below : where(greaterEqual(x, low), below, 0);
  }
  if (minIndex !== null && needs[minIndex]) {
    const raised = where(less(x, low!), g, 0);
    results[minIndex] = high === null ? raised : where(less(low!, high), raised, 0);
  }
  if (maxIndex !== null && needs[maxIndex]) {
    const crossed = low === null ? 0 : where(less(high!, low), g, 0);
    results[maxIndex] = where(greater(x, high!), g, crossed);
  }
  return results;
}

/** Options of `clamp`. */
export interface ClampOptions {
  /** The lower bound, or -Infinity; a tensor is broadcast. */
  min?: Operand;
  /** The upper bound, or Infinity; a tensor is broadcast. Where it is below `min`, it is the result. */
  max?: Operand;
}

/**
 * min(max(x, min), max), element by element with broadcasting, as torch.clamp; needs at least one bound. NaN in x or in a
 * bound gives NaN, even if NaN is the only bound, which torch.clamp, unlike torch.clamp_max, ignores. Where x equals a bound
 * it gets the gradient. Throws a RooflineError (code OPTION), ShapeError or DTypeError.
 */
export function clamp(x: Tensor, options: ClampOptions): Tensor {
  checkOptions('clamp', options, ['min', 'max']);
  const { min, max } = options;
  if (min === undefined && max === undefined) {
    throw new RooflineError('OPTION', 'clamp: takes a bound at least, such as { min: 0 }.');
  }
  const boundOf = (bound: Operand | undefined): Bound =>
    bound === undefined ? null : typeof bound === 'number' ? bound : 'tensor';
  const bounds = [min, max].filter((bound) => bound !== undefined && typeof bound !== 'number');
  const operands = [x, ...bounds];
  requireTensors('clamp', operands);
  for (const bound of [min, max]) {
    if (typeof bound === 'number') checkElement('clamp', promoteWithNumber(x.dtype, bound), bound);
  }
  const attributes = { min: boundOf(min), max: boundOf(max) };
  const dtype = dtypeOf(operands, attributes);
  if (operands.every((operand) => operand.dtype === dtype)) return applyOne(clampOp, operands, attributes);
  return scope(() =>
    applyOne(
      clampOp,
      operands.map((operand) => cast(operand, dtype)),
      attributes,
    ),
  );
}
