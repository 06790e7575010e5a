import { describeValue } from '@roofline/cuda/host';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { HostLowering } from '../../op/cpu-lowering.ts';
import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { applyOne } from '../../op/apply.ts';
import {
  type DType,
  byteSize,
  checkElement,
  computeDType,
  isFloatingPoint,
  promote,
  promoteWithNumber,
  resultType,
} from '../../base/dtype.ts';
import { fromBits16, toBits16 } from '../../base/float16.ts';
import { DTypeError } from '../../base/errors.ts';
import { type AutocastClass, type ComputeOp, type GradientContext, defineOp } from '../../op/op.ts';
import { bytesOf } from '../../op/cost.ts';
import { broadcastShapes, sizeOf } from '../../base/shape.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { notATensor, refuseMore } from '../../op/require-tensor.ts';

/**
 * An operand of a binary op. The result's dtype is torch.result_type's: the highest category (bool, integer, floating point)
 * wins, and within it a tensor with dimensions over one without, and that over a number. A whole number is an integer, any
 * other a float.
 */
export type Operand = Tensor | number;

interface UnaryDefinition {
  readonly name: string;
  readonly autocast?: AutocastClass;
  /** The output's dtype from the input's. Default: the same. */
  readonly dtype?: (input: DType) => DType;
  /** CUDA C++ over `a`. */
  readonly expression: string;
  readonly onnx: (graph: OnnxGraph, a: OnnxValue) => OnnxValue;
  /** JavaScript's function for float64 on the CPU, where ONNX Runtime's has fewer digits. */
  readonly float64?: (a: number) => number;
  /** What `gradient` reads: the input or the output. */
  readonly reads?: 'input' | 'output';
  /** The input's gradient from the output's, `g`, and the tensor read. */
  readonly gradient?: (g: Tensor, read: Tensor) => Tensor;
  /** FLOPs per element. Default 1. */
  readonly flops?: number;
  /** For a fused op, the same in smaller ones; see `ComputeOp`. */
  readonly reference?: (x: Tensor) => Tensor;
}

/** Makes a differentiable function of one tensor, element by element. */
export function unary(definition: UnaryDefinition): (x: Tensor) => Tensor {
  const { name, expression, reads, gradient, float64, reference, flops = 1 } = definition;
  const op: ComputeOp<undefined> = defineOp({
    name,
    autocast: definition.autocast ?? 'none',
    infer: ([a]) => [{ shape: a!.shape, dtype: definition.dtype?.(a!.dtype) ?? a!.dtype }],
    saves: () => (reads === 'input' ? { inputs: [0] } : reads === 'output' ? { outputs: [0] } : {}),
    gradient:
      gradient &&
      ((context) => {
        const g = context.gradients[0]!;
        return [
          gradient(g, reads === 'output' ? context.output(0) : reads === 'input' ? context.input(0) : g),
        ];
      }),
    reference: reference && (([x]) => [reference(x!)]),
    cost: (inputs, outputs) => elementwiseCost(flops, inputs, outputs),
    cuda: { kind: 'pointwise', expressions: () => [expression] },
    cpu: {
      kind: 'onnx',
      build: (graph, [a], _, { outputs }) => [
        definition.onnx(graph, graph.cast(a!, computeDType([a!.dtype], [lowered(outputs[0]!.dtype)]))),
      ],
    },
  });
  const float64Op = float64 && defineOp({ ...op, cpu: inFloat64(float64) });
  return (x, ...rest: []) => {
    if (!(x instanceof Tensor)) throw notATensor(name, x);
    refuseMore(name, rest);
    return applyOne(float64Op && x.dtype === 'float64' ? float64Op : op, [x], undefined);
  };
}

function inFloat64(fn: (a: number) => number): HostLowering<undefined> {
  return {
    kind: 'host',
    run([x], [y]) {
      const [from, to] = [x!.data as Float64Array, y!.data as Float64Array];
      for (let i = 0; i < to.length; i++) to[i] = fn(from[i]!);
    },
  };
}

interface BinaryGradient {
  /** What the gradient reads: operands and the output. */
  readonly reads: readonly ('a' | 'b' | 'output')[];
  readonly rule: (values: { g: Tensor; a: Operand; b: Operand; output: Tensor }) => Tensor;
}

interface BinaryDefinition {
  readonly name: string;
  /** Default `promote`, which has nothing to do for a number. */
  readonly autocast?: AutocastClass;
  /** For a number followed by a tensor. Default that of the op. */
  readonly autocastAfterNumber?: AutocastClass;
  /** The output's dtype from the promoted one. Default: the same. */
  readonly dtype?: (promoted: DType) => DType;
  /**
   * Whether a number is rounded to the other operand's low-precision dtype first, as comparisons must: 0.1 equals what 0.1 was
   * rounded to. Default: it is not rounded.
   */
  readonly roundsFirst?: boolean;
  /** CUDA C++ over the operands' names. */
  readonly expression: (a: string, b: string) => string;
  /** ONNX's operator for the same two inputs, or the nodes that calculate `result` from them. */
  readonly onnx: string | ((graph: OnnxGraph, a: OnnxValue, b: OnnxValue, result: TensorSpec) => OnnxValue);
  /** ONNX's operator for two bools, if it is another one. Default: they are treated as 0 and 1. */
  readonly onnxOfBools?: string;
  /** The gradients of both operands; none for comparisons. */
  readonly gradients?: readonly [BinaryGradient, BinaryGradient];
}

interface ScalarAttributes {
  readonly scalar: number;
}

/** Makes a differentiable function of two operands with broadcasting; at least one must be a tensor. */
export function binary(definition: BinaryDefinition): (a: Operand, b: Operand) => Tensor {
  const both = binaryTensors(definition);
  const numberRight = binaryWithNumber(definition, 'right');
  const numberLeft = binaryWithNumber(definition, 'left');
  const { name, roundsFirst = false } = definition;
  return (a, b, ...rest: []) => {
    refuseMore(name, rest);
    if (typeof b === 'number') return withNumber(name, numberRight, a, b, roundsFirst);
    if (typeof a === 'number') return withNumber(name, numberLeft, b, a, roundsFirst);
    if (!(a instanceof Tensor) || !(b instanceof Tensor)) throw notAnOperand(name, a, b);
    return a.dtype === b.dtype ? applyOne(both, [a, b], undefined) : mixed(both, a, b);
  };
}

/** Throws a DTypeError unless one of the operands is a tensor, and the other one or a number. */
export function checkOperands(name: string, a: Operand, b: Operand): void {
  const isFit = a instanceof Tensor ? b instanceof Tensor || typeof b === 'number' : b instanceof Tensor;
  if (!isFit || !(a instanceof Tensor || typeof a === 'number')) throw notAnOperand(name, a, b);
}

function notAnOperand(name: string, a: unknown, b: unknown): DTypeError {
  const isOperand = (x: unknown) => typeof x === 'number' || x instanceof Tensor;
  return new DTypeError(
    typeof a === 'number' && typeof b === 'number'
      ? `${name}: one operand must be a tensor, got the numbers ${a} and ${b}; make one with full().`
      : `${name}: takes tensors and numbers, not ${describeValue(isOperand(a) ? b : a)}.`,
  );
}

/**
 * For operands of different dtypes: a tensor whose values the promoted dtype may not hold is rounded to it first, as in
 * PyTorch. That is one without dimensions of a wider dtype, or integers with low precision, whose kernels calculate in
 * float32.
 */
function mixed(op: ComputeOp<undefined>, a: Tensor, b: Tensor): Tensor {
  const dtype = resultType(a, b);
  const [roundsA, roundsB] = [mustRound(a, dtype), mustRound(b, dtype)];
  if (!roundsA && !roundsB) return applyOne(op, [a, b], undefined);
  return scope(() => applyOne(op, [roundsA ? cast(a, dtype) : a, roundsB ? cast(b, dtype) : b], undefined));
}

/** Whether `x` may have values that must be rounded to `dtype` first. */
function mustRound({ dtype: own }: Tensor, dtype: DType): boolean {
  if (own === dtype || own === 'bool') return false;
  return byteSize(dtype) === 2 || promote(own, dtype) !== dtype;
}

/** If the number changes the dtype, as a fraction does for integers, the op runs in that dtype, also for a bool. */
function withNumber(
  name: string,
  op: ComputeOp<ScalarAttributes>,
  x: Operand,
  number: number,
  roundsFirst: boolean,
): Tensor {
  if (!(x instanceof Tensor)) throw notAnOperand(name, x, number);
  const { dtype } = x;
  if (isFloatingPoint(dtype)) {
    const scalar = roundsFirst && byteSize(dtype) === 2 ? fromBits16(dtype, toBits16(dtype, number)) : number;
    return applyOne(op, [x], { scalar });
  }
  const promoted = promoteWithNumber(dtype, number);
  checkElement(name, promoted, number);
  if (promoted === dtype) return applyOne(op, [x], { scalar: number });
  return scope(() => applyOne(op, [cast(x, promoted)], { scalar: number }));
}

function binaryTensors(definition: BinaryDefinition): ComputeOp<undefined> {
  const { name, gradients } = definition;
  const dtypeOf = definition.dtype ?? ((dtype) => dtype);
  return defineOp({
    name,
    autocast: definition.autocast ?? 'promote',
    infer: ([a, b]) => [
      { shape: broadcastShapes(name, a!.shape, b!.shape), dtype: dtypeOf(resultType(a!, b!)) },
    ],
    saves: gradients && ((needs) => savesOf(gradients, needs, 0, 1)),
    gradient:
      gradients &&
      ((context) =>
        gradients.map(({ reads, rule }, i) =>
          context.needs[i] ? rule(valuesRead(context, reads, 0, 1)) : null,
        )),
    cost: (inputs, outputs) => elementwiseCost(1, inputs, outputs),
    cuda: { kind: 'pointwise', expressions: () => [definition.expression('a', 'b')] },
    cpu: {
      kind: 'onnx',
      build: (graph, [a, b], _, { outputs }) => {
        const dtype = computeDType([a!.dtype, b!.dtype], [lowered(outputs[0]!.dtype)]);
        return [binaryNode(graph, definition, a!, b!, dtype, specOf(outputs[0]!))];
      },
    },
  });
}

function binaryWithNumber(definition: BinaryDefinition, side: 'left' | 'right'): ComputeOp<ScalarAttributes> {
  const { name, gradients } = definition;
  const dtypeOf = definition.dtype ?? ((dtype) => dtype);
  const right = side === 'right';
  const [a, b] = right ? [0, null] : [null, 0];
  const own = gradients?.[right ? 0 : 1];
  return defineOp<ScalarAttributes>({
    name,
    autocast: (right ? undefined : definition.autocastAfterNumber) ?? definition.autocast ?? 'none',
    infer: ([x], { scalar }) => [{ shape: x!.shape, dtype: dtypeOf(promoteWithNumber(x!.dtype, scalar)) }],
    saves: own && (() => savesOf([own], [true], a, b)),
    gradient: own && ((context) => [own.rule(valuesRead(context, own.reads, a, b))]),
    scalars: ({ scalar }) => [scalar],
    variant: () => side,
    cost: (inputs, outputs) => elementwiseCost(1, inputs, outputs),
    cuda: {
      kind: 'pointwise',
      expressions: () => [right ? definition.expression('a', 's0') : definition.expression('s0', 'a')],
    },
    cpu: {
      kind: 'onnx',
      build: (graph, [x], _, { scalars, outputs }) => {
        const dtype = computeDType([x!.dtype], [lowered(outputs[0]!.dtype)]);
        const [left, rightHand] = right ? [x!, scalars[0]!] : [scalars[0]!, x!];
        return [binaryNode(graph, definition, left, rightHand, dtype, specOf(outputs[0]!))];
      },
    },
  });
}

/** The op's nodes on both operands cast to `dtype`. ONNX has hardly any operators for bools. */
function binaryNode(
  graph: OnnxGraph,
  { onnx, onnxOfBools }: BinaryDefinition,
  a: OnnxValue,
  b: OnnxValue,
  dtype: DType,
  result: TensorSpec,
): OnnxValue {
  if (dtype === 'bool' && onnxOfBools) return graph.node(onnxOfBools, [a, b], {}, result);
  const computed = dtype === 'bool' ? 'int32' : dtype;
  const operands = [graph.cast(a, computed), graph.cast(b, computed)] as const;
  return typeof onnx === 'string' ? graph.node(onnx, operands, {}, result) : onnx(graph, ...operands, result);
}

/** Which inputs and outputs to save; `a` and `b` are the operands' input indices, null for a number. */
function savesOf(
  gradients: readonly BinaryGradient[],
  needs: readonly boolean[],
  a: number | null,
  b: number | null,
) {
  const reads = new Set(gradients.flatMap((gradient, i) => (needs[i] ? gradient.reads : [])));
  const inputs: number[] = [];
  if (a !== null && reads.has('a')) inputs.push(a);
  if (b !== null && reads.has('b')) inputs.push(b);
  return { inputs, outputs: reads.has('output') ? [0] : [] };
}

const unread = null as unknown as Tensor;

function valuesRead<A>(
  context: GradientContext<A>,
  reads: BinaryGradient['reads'],
  a: number | null,
  b: number | null,
): { g: Tensor; a: Operand; b: Operand; output: Tensor } {
  const operand = (role: 'a' | 'b', index: number | null): Operand => {
    if (index === null) return (context.attributes as ScalarAttributes).scalar;
    return reads.includes(role) ? context.input(index) : unread;
  };
  return {
    g: context.gradients[0]!,
    a: operand('a', a),
    b: operand('b', b),
    output: reads.includes('output') ? context.output(0) : unread,
  };
}

function elementwiseCost(flops: number, inputs: readonly TensorSpec[], outputs: readonly TensorSpec[]) {
  return { flops: flops * sizeOf(outputs[0]!.shape), bytesMoved: bytesOf(inputs) + bytesOf(outputs) };
}

function specOf({ shape, dtype }: TensorSpec): TensorSpec {
  return { shape, dtype: lowered(dtype) };
}

// On the CPU low precision is calculated in float32, and rounded by the device afterwards.
function lowered(dtype: DType): DType {
  return dtype === 'float16' || dtype === 'bfloat16' ? 'float32' : dtype;
}
