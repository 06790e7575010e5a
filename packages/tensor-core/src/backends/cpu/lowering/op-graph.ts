import type { TensorSpec } from '../../../base/memory-view.ts';
import type { OnnxLowering } from '../../../op/cpu-lowering.ts';
import type { OnnxValue } from '../../../onnx/graph.ts';
import { type DType, computeDType, isFloatingPoint } from '../../../base/dtype.ts';
import type { OperandLayout } from '../../../op/operand-layout.ts';
import type { ComputeOp } from '../../../op/op.ts';
import { type Layout, type Shape, broadcastShapes, sameShape } from '../../../base/shape.ts';
import { OnnxGraphBuilder } from '../../../onnx/onnx-graph.ts';
import { type ViewPlan, buildView, planView } from './view-graph.ts';

/** How the graph reads an input: from an element of its storage on, or from a gathered copy. */
export type InputBinding =
  { readonly kind: 'memory'; readonly start: number } | { readonly kind: 'gathered' };

/** A graph of one op for inputs of given layouts, and how to bind tensors to it. */
export interface OpGraph {
  readonly graph: OnnxGraphBuilder;
  readonly bindings: readonly InputBinding[];
  readonly scalarDType: DType;
}

/** How an input is read, and whether the op must swap its last two dimensions. */
export interface OperandPlan {
  readonly input: OperandLayout;
  /** Null if the op must get the input's elements gathered, in row-major order. */
  readonly view: ViewPlan | null;
  readonly transposed: boolean;
}

/** Where an op's operands are in a graph. */
export interface OperandSources {
  /** The memory of input `index`, as its plan's box (or its own shape, if it has no view). */
  memory(index: number, plan: OperandPlan): OnnxValue;
  scalar(index: number, dtype: DType): OnnxValue;
}

/** Lowers one call of an op to a graph of its own. */
export function lowerToGraph<A>(
  op: ComputeOp<A>,
  lowering: OnnxLowering<A>,
  inputs: readonly OperandLayout[],
  outputs: readonly TensorSpec[],
  attributes: A,
): OpGraph {
  const graph = new OnnxGraphBuilder();
  const bindings: InputBinding[] = [];
  const sources: OperandSources = {
    memory(index, { input, view }) {
      bindings[index] = view ? { kind: 'memory', start: view.start } : { kind: 'gathered' };
      return graph.input(input.dtype, view?.box ?? input.shape);
    },
    scalar: (_, dtype) => graph.input(dtype, []),
  };
  for (const result of addToGraph(graph, op, lowering, inputs, outputs, attributes, sources))
    graph.output(result);
  return { graph, bindings, scalarDType: scalarDTypeOf(op, inputs, outputs) };
}

/**
 * Adds one call of an op to a graph, which may hold others: the views of its inputs, casts from and to low precision, and its
 * nodes. Returns its outputs, in their dtypes.
 */
export function addToGraph<A>(
  graph: OnnxGraphBuilder,
  op: ComputeOp<A>,
  lowering: OnnxLowering<A>,
  inputs: readonly OperandLayout[],
  outputs: readonly TensorSpec[],
  attributes: A,
  sources: OperandSources,
): OnnxValue[] {
  const plans = inputs.map((input) => planOperand(input, lowering.strided ?? false));
  const repeat = !broadcastsItself(op, lowering, plans, outputs);
  const values = plans.map((plan, i) => readOperand(graph, sources.memory(i, plan), plan, repeat));
  const scalarDType = scalarDTypeOf(op, inputs, outputs);
  const scalars = (op.scalars?.(attributes) ?? []).map((_, i) => sources.scalar(i, scalarDType));
  const results = lowering.build(graph, values, attributes, { scalars, outputs });
  return results.map((result, i) => finish(graph, result, outputs[i]!));
}

/** Whether nodes can read an input from its storage; otherwise its elements must be gathered first. */
export function canReadInGraph(input: OperandLayout, strided: boolean): boolean {
  return planOperand(input, strided).view !== null;
}

function planOperand(input: OperandLayout, strided: boolean): OperandPlan {
  const transposed = strided && liesTransposed(input);
  return { input, view: planView(transposed ? swapLastTwo(input) : input, input.storageSize), transposed };
}

function liesTransposed({ shape, strides }: Layout): boolean {
  const [rows, columns] = shape.slice(-2);
  const [rowStride, columnStride] = strides.slice(-2);
  return shape.length >= 2 && rows! > 1 && columns! > 1 && rowStride! > 0 && columnStride! > rowStride!;
}

function swapLastTwo({ shape, strides, offset }: Layout): Layout {
  const swap = (list: Shape) => [...list.slice(0, -2), list.at(-1)!, list.at(-2)!];
  return { shape: swap(shape), strides: swap(strides), offset };
}

function readOperand(
  graph: OnnxGraphBuilder,
  memory: OnnxValue,
  { view, transposed }: OperandPlan,
  repeat: boolean,
): OnnxValue {
  const low = memory.dtype === 'float16' || memory.dtype === 'bfloat16';
  const computable = low ? graph.cast(memory, 'float32') : memory;
  if (!view) return computable;
  const value = buildView(graph, computable, view, { repeat });
  return transposed ? { ...value, transposed } : value;
}

/**
 * Whether views that repeat elements may be passed unrepeated: the op broadcasts, as ONNX's pointwise operators and matrix
 * products (in their leading dimensions) do, and the operands still span the output.
 */
function broadcastsItself<A>(
  op: ComputeOp<A>,
  { strided }: OnnxLowering<A>,
  operands: readonly OperandPlan[],
  outputs: readonly TensorSpec[],
): boolean {
  if (outputs.length !== 1) return false;
  const shapes = operands.map(({ view, input }) => view?.unrepeated ?? input.shape);
  const spans = (lists: readonly Shape[], whole: Shape) =>
    sameShape(
      lists.reduce((a, b) => broadcastShapes(op.name, a, b)),
      whole,
    );
  if (op.cuda.kind === 'pointwise') return spans(shapes, outputs[0]!.shape);
  if (!strided) return false;
  const matrices = operands.every(
    ({ view }, i) => !view || sameShape(view.shape.slice(-2), shapes[i]!.slice(-2)),
  );
  return (
    matrices &&
    spans(
      shapes.map((shape) => shape.slice(0, -2)),
      outputs[0]!.shape.slice(0, -2),
    )
  );
}

/** An op's result, reshaped and rounded to its output's shape and dtype. */
function finish(graph: OnnxGraphBuilder, result: OnnxValue, { shape, dtype }: TensorSpec): OnnxValue {
  const whole = sameShape(result.shape, shape)
    ? result
    : graph.node('Expand', [result, graph.integers(shape)], {}, { shape });
  return graph.cast(whole, dtype);
}

function scalarDTypeOf<A>(
  op: ComputeOp<A>,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): DType {
  const dtypes = (specs: readonly TensorSpec[]) => specs.map(({ dtype }) => dtype);
  const computed = computeDType(dtypes(inputs), dtypes(outputs));
  return op.cuda.kind === 'pointwise' || isFloatingPoint(computed) ? computed : 'float32';
}
