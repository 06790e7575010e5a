import { applyOne } from '../../op/apply.ts';
import { checkOptions } from '../../op/check-options.ts';
import type { OnnxValue } from '../../op/cpu-lowering.ts';
import { bytesOf } from '../../op/cost.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { computeDType, isFloatingPoint } from '../../tensor/dtype.ts';
import { ShapeError } from '../../errors.ts';
import { formatShape, sizeOf } from '../../tensor/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { div, mul } from '../elementwise/arithmetic.ts';
import { equal } from '../elementwise/comparisons.ts';
import {
  type ReductionAttributes,
  type ReductionOptions,
  foldedDims,
  lettingNaNWin,
  reducedShape,
  sum,
  unfold,
} from './reductions.ts';

const minOp: ComputeOp<ReductionAttributes> = defineOp<ReductionAttributes>({
  name: 'min',
  autocast: 'none',
  infer: ([x], attributes) => [{ shape: reducedShape(x!.shape, attributes), dtype: x!.dtype }],
  saves: () => ({ inputs: [0], outputs: [0] }),
  gradient: (context) => {
    const g = context.gradients[0]!;
    const chosen = cast(equal(context.input(0), unfold(context.output(0), context)), g.dtype);
    const ties = sum(chosen, { dims: context.attributes.dims, keepDims: true });
    return [mul(unfold(g, context), div(chosen, ties))];
  },
  variant: ({ dims, keepDims }) => `${dims.join()}${keepDims ? 'k' : ''}`,
  cost: (inputs, outputs) => ({
    flops: sizeOf(inputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: { kind: 'reduction', identity: 'highest', combine: 'smaller(x, y)', finish: 'x' },
  cpu: {
    kind: 'onnx',
    build: (graph, [x], { dims, keepDims }, { outputs }) => {
      const { shape, dtype } = outputs[0]!;
      const reduce = (type: string, value: OnnxValue) =>
        graph.node(type, [value, graph.integers(dims)], { keepdims: keepDims ? 1 : 0 }, { shape });
      // ONNX folds no bools.
      const folded = reduce(
        'ReduceMin',
        graph.cast(x!, dtype === 'bool' ? 'int32' : computeDType([dtype], [])),
      );
      return [isFloatingPoint(dtype) ? lettingNaNWin(graph, x!, folded, reduce) : graph.cast(folded, dtype)];
    },
  },
});

/**
 * The smallest value over `dims`, all by default; NaN wins. Equal minima share the gradient evenly, as torch.amin.
 * Throws a ShapeError where there is nothing to fold.
 */
export function min(x: Tensor, options: ReductionOptions = {}): Tensor {
  checkOptions('min', options, ['dims', 'keepDims']);
  const { dims, keepDims = false } = options;
  const folded = foldedDims('min', x, dims);
  if (folded.some((dim) => x.shape[dim] === 0)) {
    throw new ShapeError(
      `min: ${formatShape(x.shape)} has no elements over dimensions ${formatShape(folded)}.`,
    );
  }
  if (folded.length === 0 && x.rank > 0) return cast(x, x.dtype);
  return applyOne(minOp, [x], { dims: folded, keepDims });
}
