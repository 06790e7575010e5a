import type { TensorSpec } from '../../op/memory-view.ts';
import type { OnnxGraph, OnnxValue } from '../../op/cpu-lowering.ts';
import { applyOne } from '../../op/apply.ts';
import { type DType, computeDType, isFloatingPoint, promote, promoteWithNumber } from '../../tensor/dtype.ts';
import { type AutocastClass, type ComputeOp, type GradientContext, defineOp } from '../../op/op.ts';
import { bytesOf } from '../../op/cost.ts';
import { broadcastShapes, sizeOf } from '../../tensor/shape.ts';
import { scope } from '../../tensor/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';

/** An operand of a binary op. Numbers take part without changing a floating-point tensor's dtype. */
export type Operand = Tensor | number;

interface UnaryDefinition {
  readonly name: string;
  readonly autocast?: AutocastClass;
  /** The output's dtype from the input's. Default: the same. */
  readonly dtype?: (input: DType) => DType;
  /** CUDA C++ over `a`. */
  readonly expression: string;
  readonly onnx: (graph: OnnxGraph, a: OnnxValue) => OnnxValue;
  /** What `gradient` reads: the input or the output. */
  readonly reads?: 'input' | 'output';
  /** The input's gradient from the output's, `g`, and the tensor read. */
  readonly gradient?: (g: Tensor, read: Tensor) => Tensor;
  /** FLOPs per element. Default 1. */
  readonly flops?: number;
}

/** Makes a differentiable function of one tensor, element by element. */
export function unary(definition: UnaryDefinition): (x: Tensor) => Tensor {
  const { name, expression, reads, gradient, flops = 1 } = definition;
  const op = defineOp({
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
    cost: (inputs, outputs) => elementwiseCost(flops, inputs, outputs),
    cuda: { kind: 'pointwise', expressions: () => [expression] },
    cpu: {
      kind: 'onnx',
      build: (graph, [a], _, { outputs }) => [
        definition.onnx(graph, graph.cast(a!, computeDType([a!.dtype], [lowered(outputs[0]!.dtype)]))),
      ],
    },
  });
  return (x) => applyOne(op, [x], undefined);
}

interface BinaryGradient {
  /** What `rule` reads: operands and the output. */
  readonly reads: readonly ('a' | 'b' | 'output')[];
  readonly rule: (values: { g: Tensor; a: Operand; b: Operand; output: Tensor }) => Tensor;
}

interface BinaryDefinition {
  readonly name: string;
  readonly autocast?: AutocastClass;
  /** The output's dtype from the promoted one. Default: the same. */
  readonly dtype?: (promoted: DType) => DType;
  /** CUDA C++ over the operands' names. */
  readonly expression: (a: string, b: string) => string;
  /** ONNX's operator of the same two inputs. */
  readonly onnx: string;
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
  return (a, b) => {
    if (typeof a !== 'number') {
      return typeof b === 'number' ? withNumber(numberRight, a, b) : applyOne(both, [a, b], undefined);
    }
    if (typeof b !== 'number') return withNumber(numberLeft, b, a);
    throw new TypeError(`${definition.name}: one operand must be a tensor, got the numbers ${a} and ${b}.`);
  };
}

/** A fraction beside integers is calculated with in floating point, also where the result is bool. */
function withNumber(op: ComputeOp<ScalarAttributes>, x: Tensor, scalar: number): Tensor {
  const dtype = promoteWithNumber(x.dtype, scalar);
  if (!isFloatingPoint(dtype) || isFloatingPoint(x.dtype)) return applyOne(op, [x], { scalar });
  return scope(() => applyOne(op, [cast(x, dtype)], { scalar }));
}

function binaryTensors(definition: BinaryDefinition): ComputeOp<undefined> {
  const { name, gradients } = definition;
  const dtypeOf = definition.dtype ?? ((dtype) => dtype);
  return defineOp({
    name,
    autocast: definition.autocast ?? 'promote',
    infer: ([a, b]) => [
      { shape: broadcastShapes(name, a!.shape, b!.shape), dtype: dtypeOf(promote(a!.dtype, b!.dtype)) },
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
        return [
          graph.node(
            definition.onnx,
            [graph.cast(a!, dtype), graph.cast(b!, dtype)],
            {},
            specOf(outputs[0]!),
          ),
        ];
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
    autocast: 'none',
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
        const [tensor, scalar] = [graph.cast(x!, dtype), graph.cast(scalars[0]!, dtype)];
        const operands = right ? [tensor, scalar] : [scalar, tensor];
        return [graph.node(definition.onnx, operands, {}, specOf(outputs[0]!))];
      },
    },
  });
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

// On the CPU low-precision tensors are calculated in float32 and rounded by the device afterwards.
function lowered(dtype: DType): DType {
  return dtype === 'float16' || dtype === 'bfloat16' ? 'float32' : dtype;
}
