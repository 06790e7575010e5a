import { checkFlag, checkOptions } from '@roofline/cuda/host';
import { requireTensor } from '../../op/require-tensor.ts';
import type { ReductionKernel } from '../../op/cuda-lowering.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { applyOne } from '../../op/apply.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import { bytesOf } from '../../op/cost.ts';
import { type DType, floatingPoint, isFloatingPoint } from '../../base/dtype.ts';
import { ShapeError } from '../../base/errors.ts';
import { type AutocastClass, type ComputeOp, type GradientContext, defineOp } from '../../op/op.ts';
import { type Shape, checkList, formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { div, mul } from '../elementwise/arithmetic.ts';
import { cast } from '../copy/cast.ts';
import { equal } from '../elementwise/comparisons.ts';
import { expand, reshape } from '../shape/views.ts';
import { dimensionOf } from '../support/one-dimension.ts';
import { sumNode } from './sum-graph.ts';

export interface ReductionAttributes {
  /** Ascending, from the front. */
  readonly dims: readonly number[];
  readonly keepDims: boolean;
}

/** Options of `sum`, `mean`, `max`, `min` and their like. */
export interface ReductionOptions {
  /** The dimensions to fold; all if absent. Negative ones count from the back. */
  dims?: number | readonly number[];
  /** Whether to keep folded dimensions with length one. */
  keepDims?: boolean;
}

/** What to fold, and into what. */
interface Fold extends ReductionAttributes {
  readonly output: TensorSpec;
}

interface ReductionDefinition {
  readonly name: string;
  readonly autocast: AutocastClass;
  readonly dtype: (input: DType) => DType;
  readonly kernel: ReductionKernel;
  /** The fold as ONNX nodes. */
  readonly onnx: (graph: OnnxGraph, x: OnnxValue, fold: Fold) => OnnxValue;
  /** Whether a fold of no elements has a value. */
  readonly ofNothing: boolean;
  readonly saves?: { inputs?: number[]; outputs?: number[] };
  readonly gradient: (g: Tensor, context: GradientContext<ReductionAttributes>) => Tensor;
}

function reduction(definition: ReductionDefinition): (x: Tensor, options?: ReductionOptions) => Tensor {
  const { name, kernel } = definition;
  const op: ComputeOp<ReductionAttributes> = defineOp<ReductionAttributes>({
    name,
    autocast: definition.autocast,
    infer: ([x], attributes) => {
      if (!definition.ofNothing) requireElements(name, x!, attributes);
      return [{ shape: reducedShape(x!.shape, attributes), dtype: definition.dtype(x!.dtype) }];
    },
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
      build: (graph, [x], attributes, { outputs }) => [
        definition.onnx(graph, x!, { ...attributes, output: outputs[0]! }),
      ],
    },
  });
  return (x, options) => {
    requireTensor(name, x);
    const { dims, keepDims = false } = options === undefined ? foldAll : checkReduction(name, options);
    const folded = foldedDims(name, x, dims);
    return folded.length === 0 && x.rank > 0
      ? cast(x, definition.dtype(x.dtype))
      : applyOne(op, [x], { dims: folded, keepDims });
  };
}

const foldAll: ReductionOptions = {};

/** The names of `ReductionOptions`. */
export const reductionOptions = ['dims', 'keepDims'] as const;

/** The options, checked. Throws a RooflineError (code OPTION or ARGUMENT). */
export function checkReduction<O extends { readonly keepDims?: boolean }>(
  name: string,
  options: O,
  known: readonly string[] = reductionOptions,
): O {
  checkOptions(name, options, known);
  if (options.keepDims !== undefined) checkFlag(name, 'keepDims', options.keepDims);
  return options;
}

/** Refuses dimensions of length 0, which have no largest element, as torch.amax does. */
function requireElements(name: string, { shape }: TensorSpec, { dims }: ReductionAttributes): void {
  const empty = dims.find((dim) => shape[dim] === 0);
  if (empty === undefined) return;
  throw new ShapeError(
    `${name}: dimension ${empty} of ${formatShape(shape)} has no elements, so there is no ${name} along it.`,
  );
}

/** Sums of integers wrap around, as int64 does; low precision arrives, and is summed, in float32. */
function sumGraph(graph: OnnxGraph, x: OnnxValue, { dims, keepDims, output }: Fold): OnnxValue {
  const terms = isFloatingPoint(output.dtype) ? x : graph.cast(x, output.dtype);
  return sumNode(graph, terms, dims, keepDims);
}

/** 0/0, NaN, for no elements. Integers are summed in float64, which is exact up to 2⁵³. */
function meanGraph(graph: OnnxGraph, x: OnnxValue, { dims, keepDims }: Fold): OnnxValue {
  const terms = isFloatingPoint(x.dtype) ? x : graph.cast(x, 'float64');
  const count = sizeOf(dims.map((dim) => x.shape[dim]!));
  return graph.node('Div', [sumNode(graph, terms, dims, keepDims), graph.scalar(terms.dtype, count)]);
}

/** ONNX Runtime's ReduceMax and ReduceMin pass NaN over, so where one is in a fold it is put in afterwards. */
function extremumGraph(type: 'ReduceMax' | 'ReduceMin'): ReductionDefinition['onnx'] {
  return (graph, x, { dims, keepDims, output: { shape, dtype } }) => {
    const fold = (by: string, value: OnnxValue) =>
      graph.node(by, [value, graph.integers(dims)], { keepdims: keepDims ? 1 : 0 }, { shape });
    // ONNX folds no bools.
    if (!isFloatingPoint(x.dtype)) {
      const folded = fold(type, x.dtype === 'bool' ? graph.cast(x, 'int32') : x);
      return graph.cast(folded, dtype);
    }
    const folded = fold(type, x);
    const isNaN = graph.cast(graph.node('IsNaN', [x], {}, { dtype: 'bool' }), 'int32');
    const anyNaN = graph.cast(fold('ReduceMax', isNaN), 'bool');
    return graph.node('Where', [anyNaN, graph.scalar(folded.dtype, NaN), folded], {}, folded);
  };
}

/** Dimensions counted from the front, ascending; a tensor without any accepts 0 and -1, as in PyTorch, and folds nothing. */
export function foldedDims(name: string, x: Tensor, dims: ReductionOptions['dims']): number[] {
  if (dims === undefined) return x.shape.map((_, i) => i);
  if (typeof dims === 'number') {
    const dim = dimensionOf(name, x, dims);
    return x.rank === 0 ? [] : [dim];
  }
  checkList(name, dims);
  const list = dims.map((dim) => dimensionOf(name, x, dim));
  if (new Set(list).size !== list.length) {
    throw new ShapeError(`${name}: a dimension appears twice in ${formatShape(dims)}.`);
  }
  return x.rank === 0 ? [] : list.sort((a, b) => a - b);
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
  onnx: sumGraph,
  ofNothing: true,
  gradient: (g, context) => unfold(g, context),
});

/** The arithmetic mean over `dims`; float32 for integers. */
export const mean = reduction({
  name: 'mean',
  autocast: 'float32',
  dtype: floatingPoint,
  kernel: { kind: 'reduction', identity: 'zero', combine: 'x + y', finish: 'x / n' },
  onnx: meanGraph,
  ofNothing: true,
  gradient: (g, context) => unfold(div(g, foldedCount(context)), context),
});

/** Elements that equal the extremum share its gradient evenly, as in torch.amax and torch.amin. */
function shareAmongTies(g: Tensor, context: GradientContext<ReductionAttributes>): Tensor {
  const chosen = cast(equal(context.input(0), unfold(context.output(0), context)), g.dtype);
  const ties = sum(chosen, { dims: context.attributes.dims, keepDims: true });
  return mul(unfold(g, context), div(chosen, ties));
}

/** The largest value over `dims`; NaN wins. Equal maxima share the gradient. Throws a ShapeError for no elements. */
export const max = reduction({
  name: 'max',
  autocast: 'none',
  dtype: (dtype) => dtype,
  kernel: { kind: 'reduction', identity: 'lowest', combine: 'larger(x, y)', finish: 'x' },
  onnx: extremumGraph('ReduceMax'),
  ofNothing: false,
  saves: { inputs: [0], outputs: [0] },
  gradient: shareAmongTies,
});

/** The smallest value over `dims`; NaN wins. Equal minima share the gradient. Throws a ShapeError for no elements. */
export const min = reduction({
  name: 'min',
  autocast: 'none',
  dtype: (dtype) => dtype,
  kernel: { kind: 'reduction', identity: 'highest', combine: 'smaller(x, y)', finish: 'x' },
  onnx: extremumGraph('ReduceMin'),
  ofNothing: false,
  saves: { inputs: [0], outputs: [0] },
  gradient: shareAmongTies,
});
