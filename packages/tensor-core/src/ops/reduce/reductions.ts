import type { ReductionKernel } from '../../op/cuda-lowering.ts';
import type { OnnxGraph, OnnxValue } from '../../op/cpu-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { bytesOf } from '../../op/cost.ts';
import { type DType, floatingPoint, isFloatingPoint } from '../../tensor/dtype.ts';
import { ShapeError } from '../../errors.ts';
import { type AutocastClass, type ComputeOp, type GradientContext, defineOp } from '../../op/op.ts';
import { type Shape, formatShape, normalizeDimension, sizeOf } from '../../tensor/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { div, mul } from '../elementwise/arithmetic.ts';
import { cast } from '../copy/cast.ts';
import { equal } from '../elementwise/comparisons.ts';
import { expand, reshape } from '../shape/views.ts';

export interface ReductionAttributes {
  /** Ascending, from the front. */
  readonly dims: readonly number[];
  readonly keepDims: boolean;
}

export interface ReductionOptions {
  /** The dimensions to fold; all when absent. Negative ones count from the back. */
  dims?: number | readonly number[];
  /** Keep folded dimensions with length one. */
  keepDims?: boolean;
}

interface ReductionDefinition {
  readonly name: string;
  readonly autocast: AutocastClass;
  readonly dtype: (input: DType) => DType;
  readonly kernel: ReductionKernel;
  readonly onnx: 'ReduceSum' | 'ReduceMean' | 'ReduceMax';
  readonly saves?: { inputs?: number[]; outputs?: number[] };
  readonly gradient: (g: Tensor, context: GradientContext<ReductionAttributes>) => Tensor;
}

function reduction(definition: ReductionDefinition): (x: Tensor, options?: ReductionOptions) => Tensor {
  const { name, kernel } = definition;
  const op: ComputeOp<ReductionAttributes> = defineOp<ReductionAttributes>({
    name,
    autocast: definition.autocast,
    infer: ([x], attributes) => [
      { shape: reducedShape(x!.shape, attributes), dtype: definition.dtype(x!.dtype) },
    ],
    saves: definition.saves && (() => definition.saves!),
    gradient: (context) => [definition.gradient(context.gradients[0]!, context)],
    variant: ({ dims, keepDims }) => `${dims.join()}${keepDims ? 'k' : ''}`,
    cost: (inputs, outputs) => ({
      flops: sizeOf(inputs[0]!.shape),
      bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    }),
    cuda: kernel,
    cpu: {
      kind: 'onnx',
      build: (graph, [x], { dims, keepDims }, { outputs }) => {
        const dtype = floatOf(outputs[0]!.dtype);
        const reduce = (type: string, value: OnnxValue) =>
          graph.node(
            type,
            [value, graph.integers(dims)],
            { keepdims: keepDims ? 1 : 0 },
            { shape: outputs[0]!.shape },
          );
        const folded = reduce(definition.onnx, graph.cast(x!, dtype));
        return [
          definition.onnx === 'ReduceMax' && isFloatingPoint(dtype)
            ? lettingNaNWin(graph, x!, folded, reduce)
            : folded,
        ];
      },
    },
  });
  return (x, { dims, keepDims = false } = {}) => {
    const folded = foldedDims(name, x, dims);
    return folded.length === 0 && x.rank > 0
      ? cast(x, definition.dtype(x.dtype))
      : applyOne(op, [x], { dims: folded, keepDims });
  };
}

/** ONNX Runtime's ReduceMax passes NaN over, so where one is in a fold it is put in afterwards. */
export function lettingNaNWin(
  graph: OnnxGraph,
  x: OnnxValue,
  folded: OnnxValue,
  reduce: (type: string, value: OnnxValue) => OnnxValue,
): OnnxValue {
  const isNaN = graph.cast(graph.node('IsNaN', [x], {}, { dtype: 'bool' }), 'int32');
  const anyNaN = graph.cast(reduce('ReduceMax', isNaN), 'bool');
  return graph.node('Where', [anyNaN, graph.scalar(folded.dtype, NaN), folded], {}, folded);
}

// On the CPU low-precision tensors are folded in float32.
function floatOf(dtype: DType): DType {
  return dtype === 'float16' || dtype === 'bfloat16' ? 'float32' : dtype;
}

export function foldedDims(name: string, x: Tensor, dims: ReductionOptions['dims']): number[] {
  if (dims === undefined) return x.shape.map((_, i) => i);
  const list = (typeof dims === 'number' ? [dims] : dims).map((dim) => normalizeDimension(name, dim, x.rank));
  if (new Set(list).size !== list.length) {
    throw new ShapeError(`${name}: a dimension appears twice in ${formatShape(dims as Shape)}.`);
  }
  return list.sort((a, b) => a - b);
}

/** The shape after folding. */
export function reducedShape(shape: Shape, { dims, keepDims }: ReductionAttributes): Shape {
  return keepDims
    ? shape.map((length, i) => (dims.includes(i) ? 1 : length))
    : shape.filter((_, i) => !dims.includes(i));
}

/** A folded tensor as a view of the shape before folding, repeating along the folded dimensions. */
export function unfold(
  folded: Tensor,
  { inputSpecs, attributes }: GradientContext<ReductionAttributes>,
): Tensor {
  const { shape } = inputSpecs[0]!;
  return expand(reshape(folded, reducedShape(shape, { ...attributes, keepDims: true })), shape);
}

function foldedCount({ inputSpecs, outputSpecs }: GradientContext<ReductionAttributes>): number {
  return sizeOf(inputSpecs[0]!.shape) / Math.max(1, sizeOf(outputSpecs[0]!.shape));
}

/** The sum over `dims`; integers and bool are summed as int64. */
export const sum = reduction({
  name: 'sum',
  autocast: 'float32',
  dtype: (dtype) => (isFloatingPoint(dtype) ? dtype : 'int64'),
  kernel: { kind: 'reduction', identity: 'zero', combine: 'x + y', finish: 'x' },
  onnx: 'ReduceSum',
  gradient: (g, context) => unfold(g, context),
});

/** The arithmetic mean over `dims`; of integers in float32. */
export const mean = reduction({
  name: 'mean',
  autocast: 'float32',
  dtype: floatingPoint,
  kernel: { kind: 'reduction', identity: 'zero', combine: 'x + y', finish: 'x / n' },
  onnx: 'ReduceMean',
  gradient: (g, context) => unfold(div(g, foldedCount(context)), context),
});

/** The largest value over `dims`; NaN wins. Equal maxima share the gradient evenly, as torch.amax. */
export const max = reduction({
  name: 'max',
  autocast: 'none',
  dtype: (dtype) => dtype,
  kernel: { kind: 'reduction', identity: 'lowest', combine: 'larger(x, y)', finish: 'x' },
  onnx: 'ReduceMax',
  saves: { inputs: [0], outputs: [0] },
  gradient: (g, context) => {
    const chosen = cast(equal(context.input(0), unfold(context.output(0), context)), g.dtype);
    const ties = sum(chosen, { dims: context.attributes.dims, keepDims: true });
    return mul(unfold(g, context), div(chosen, ties));
  },
});
