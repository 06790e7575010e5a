import { applyOne } from '../../op/apply.ts';
import { requireTensor } from '../../op/require-tensor.ts';
import type { ReductionKernel } from '../../op/cuda-lowering.ts';
import { bytesOf } from '../../op/cost.ts';
import { defineOp } from '../../op/op.ts';
import { full } from '../creation/from-values.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import {
  type ReductionAttributes,
  type ReductionOptions,
  checkReduction,
  foldedDims,
  reducedShape,
} from './reductions.ts';

interface LogicalFold {
  readonly name: string;
  readonly identity: ReductionKernel['identity'];
  readonly operator: '||' | '&&';
  /** The ONNX fold of zeros and ones. */
  readonly onnx: 'ReduceMax' | 'ReduceMin';
  readonly ofNothing: boolean;
}

/** A fold of truth values: every number except 0 is true, also NaN. The result is bool, and has no gradient. */
function logicalFold({ name, identity, operator, onnx, ofNothing }: LogicalFold) {
  const op = defineOp<ReductionAttributes>({
    name,
    autocast: 'none',
    infer: ([x], attributes) => [{ shape: reducedShape(x!.shape, attributes), dtype: 'bool' }],
    variant: ({ dims, keepDims }) => `${dims.join()}${keepDims ? 'k' : ''}`,
    cost: (inputs, outputs) => ({
      flops: sizeOf(inputs[0]!.shape),
      bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    }),
    cuda: { kind: 'reduction', identity, combine: `x != 0 ${operator} y != 0`, finish: 'x != 0' },
    cpu: {
      kind: 'onnx',
      build: (graph, [x], { dims, keepDims }, { outputs }) => {
        // ONNX folds no bools.
        const truth = graph.cast(graph.cast(x!, 'bool'), 'int32');
        const { shape } = outputs[0]!;
        return [
          graph.cast(
            graph.node(onnx, [truth, graph.integers(dims)], { keepdims: keepDims ? 1 : 0 }, { shape }),
            'bool',
          ),
        ];
      },
    },
  });
  return (x: Tensor, options: ReductionOptions = {}): Tensor => {
    requireTensor(name, x);
    const { dims, keepDims = false } = checkReduction(name, options);
    const attributes = { dims: foldedDims(name, x, dims), keepDims };
    if (attributes.dims.length === 0 && x.rank > 0) return cast(x, 'bool');
    if (x.size > 0) return applyOne(op, [x], attributes);
    return full(reducedShape(x.shape, attributes), Number(ofNothing), { dtype: 'bool', device: x.device });
  };
}

/** Whether any element over `dims`, all by default, is nonzero; NaN is. False for no elements. */
export const any = logicalFold({
  name: 'any',
  identity: 'zero',
  operator: '||',
  onnx: 'ReduceMax',
  ofNothing: false,
});

/** Whether all elements over `dims`, all by default, are nonzero; NaN is. True for no elements. */
export const all = logicalFold({
  name: 'all',
  identity: 'highest',
  operator: '&&',
  onnx: 'ReduceMin',
  ofNothing: true,
});
