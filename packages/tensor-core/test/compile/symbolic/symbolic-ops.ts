import { isCast, isOp } from '../../../src/compile/passes/is-op.ts';
import { placesRead, textsOf } from '../../../src/compile/passes/pointwise-call.ts';
import { inputNames } from '../../../src/backends/cuda/generated/pointwise-kernel.ts';
import type { UpdateByTensor } from '../../../src/op/kernel-rewrites.ts';
import { rewritesOf } from '../../../src/compile/passes/rewrites-of.ts';
import { addmmInPlaceOp, addmmOp } from '../../../src/ops/matrix/addmm.ts';
import { type MatmulAttributes, matmulOp } from '../../../src/ops/matrix/matmul.ts';
import type { Call, Operand } from '../../../src/compile/graph/graph.ts';
import type { Shape } from '../../../src/base/shape.ts';
import { type Symbol, minus, plus, symbolOf, times } from './symbols.ts';

type Values = readonly Symbol[];

/** What calls of parts of an op need to know of the whole op. */
export interface PartialOps {
  /** By name, the first of the outputs that a later call may finish. */
  readonly deferred: ReadonlyMap<string, number>;
  /** By name, how an update of several tensors may be made in several calls. */
  readonly updates: ReadonlyMap<string, UpdateByTensor<never>>;
}

export function partialOps(calls: readonly Call[]): PartialOps {
  const kernels = calls.map((call) => ({ name: call.op.name, ...rewritesOf(call) }));
  return {
    deferred: new Map(kernels.flatMap(({ name, deferred }) => (deferred ? [[name, deferred.first]] : []))),
    updates: new Map(kernels.flatMap(({ name, byTensor }) => (byTensor ? [[name, byTensor]] : []))),
  };
}

/** What a call that is not fused makes of its inputs' values, output by output. */
export function symbolsOf(call: Call, inputs: readonly Values[], parts: PartialOps): Values[] {
  const { op, outputs, attributes } = call;
  if (isCast(op)) return [inputs[0]!];
  if (op.cuda.kind === 'pointwise') return pointwise(call, inputs);
  if (isProduct(call)) return [product(call, inputs)];
  const rewrites = rewritesOf(call);
  const update = parts.updates.get(op.name);
  if (update) return updated(call, inputs, update);
  const whole = op.name.replace(/ByProducts$/, '');
  const multiplying = parts.updates.get(whole);
  if (multiplying) return updatedByProducts(call, whole, inputs, multiplying);
  if (rewrites.scales) return scaled(call, inputs);
  if (op.name.endsWith('_factor')) return [[symbolOf('factor', inputs.flat())]];
  if (op.name.endsWith('_coefficients'))
    return [filled(coefficientsOf(op.name, attributes), outputs[0]!.size)];
  if (op.name.startsWith('finish_')) return outputs.map(({ size }, i) => fromPartial(inputs[i]![0]!, size));
  const all = symbolOf(`${op.name} ${JSON.stringify(attributes)}`, inputs.flat());
  const first = parts.deferred.get(op.name) ?? Infinity;
  return outputs.map(({ size }, i) => {
    const own = symbolOf(`output ${i}`, [all]);
    if (i < first) return Array.from({ length: size }, (_, at) => symbolOf('element', [own, at]));
    return rewrites.deferred ? fromPartial(own, size) : filled(own, size);
  });
}

function coefficientsOf(name: string, attributes: unknown): Symbol {
  return symbolOf(`${name} ${JSON.stringify(attributes)}`);
}

/** An update of several tensors, or of some of them by numbers that another call has written. */
function updated(
  call: Call,
  inputs: readonly Values[],
  { written, roles, coefficientCount }: UpdateByTensor<never>,
): Values[] {
  const count = call.outputs.length / written;
  const behind = call.inputs.slice(roles * count);
  const at = rewritesOf(call).byTensor
    ? -1
    : behind.findIndex(({ shape }) => shape.length === 1 && shape[0] === coefficientCount);
  const [shared, numbers] =
    at < 0
      ? [inputs.slice(roles * count), []]
      : [inputs.slice(roles * count, roles * count + at), inputs.slice(roles * count + at)];
  const coefficients = numbers[0]?.[0] ?? coefficientsOf(`${call.op.name}_coefficients`, call.attributes);
  const factor = numbers[1]?.[0] ?? 1;
  return call.outputs.map((output, i) => {
    const tensor = i % count;
    const own = Array.from({ length: roles }, (_, role) => inputs[role * count + tensor]!);
    const by = own
      .slice(written)
      .flat()
      .map((value) => times(value, factor));
    const key = `${call.op.name}, role ${Math.floor(i / count)}`;
    const all = symbolOf(key, [coefficients, ...own.slice(0, written).flat(), ...by, ...shared.flat()]);
    return Array.from({ length: output.size }, (_, element) => symbolOf('element', [all, element]));
  });
}

/** The same where each gradient is the product of two inputs. */
function updatedByProducts(
  call: Call,
  name: string,
  inputs: readonly Values[],
  update: UpdateByTensor<never>,
): Values[] {
  const { written } = update;
  const count = call.outputs.length / written;
  const isFactor = (_: unknown, i: number) => i >= written * count && i < (written + 2) * count;
  const gradients = Array.from({ length: count }, (_, tensor) => {
    const places = [written * count + tensor, (written + 1) * count + tensor];
    const factors = { inputs: places.map((place) => call.inputs[place]!), outputs: [call.outputs[tensor]!] };
    return product(
      { ...call, ...factors, attributes: { scale: 1 } },
      places.map((place) => inputs[place]!),
    );
  });
  const spliced = <T>(all: readonly T[], added: readonly T[]) => {
    const others = all.filter((each, i) => !isFactor(each, i));
    return [...others.slice(0, written * count), ...added, ...others.slice(written * count)];
  };
  const like = {
    ...call,
    op: { ...call.op, name },
    inputs: spliced(call.inputs, call.outputs.slice(0, count)),
  };
  return updated(like, spliced(inputs, gradients), update);
}

function filled(value: Symbol, size: number): Symbol[] {
  return Array.from({ length: size }, () => value);
}

function fromPartial(partial: Symbol, size: number): Symbol[] {
  return Array.from({ length: size }, (_, at) => symbolOf('finished', [partial, at]));
}

function pointwise(call: Call, inputs: readonly Values[]): Values[] {
  const { values, expressions } = textsOf(call);
  const read = placesRead(call);
  const scalars = call.op.scalars?.(call.attributes as never) ?? [];
  return expressions.map((expression, i) => {
    const { shape, size } = call.outputs[i]!;
    const operands = read.map((place) => broadcast(inputs[place]!, call.inputs[place]!.shape, shape));
    const ring = values.length === 0 ? ringOp(expression) : null;
    const key = JSON.stringify([values.map(({ text }) => text), expression, scalars]);
    return Array.from({ length: size }, (_, at) => {
      const elements = operands.map((each) => each[at]!);
      return ring ? ring(elements) : symbolOf(key, elements);
    });
  });
}

/** Ops that only move, add or multiply. */
function ringOp(expression: string): ((elements: Values) => Symbol) | null {
  if (inputNames.includes(expression)) return ([a]) => a!;
  if (expression === 'a + b') return ([a, b]) => plus(a!, b ?? a!);
  if (expression === 'a - b') return ([a, b]) => minus(a!, b!);
  if (expression === 'a * b') return ([a, b]) => times(a!, b!);
  return null;
}

function broadcast(values: Values, shape: Shape, to: Shape): Values {
  let lead = to.length - shape.length;
  let strides = shape.map((_, d) => shape.slice(d + 1).reduce((product, length) => product * length, 1));
  strides = [...to.map(() => 0).slice(0, lead), ...strides.map((stride, d) => (shape[d] === 1 ? 0 : stride))];
  lead = 0;
  let places = [0];
  to.forEach((length, d) => {
    places = places.flatMap((place) => Array.from({ length }, (_, i) => place + i * strides[d]!));
  });
  return places.map((place) => values[place]!);
}

function isProduct({ op }: Call): boolean {
  return [matmulOp, addmmOp, addmmInPlaceOp].some((other) => isOp(op, other));
}

function product(
  { attributes, inputs: operands, outputs: [output] }: Call,
  inputs: readonly Values[],
): Values {
  const { transposeB = false, scale } = attributes as MatmulAttributes;
  const [a, b] = operands as readonly [Operand, Operand];
  const isRow = a.shape.length === 1;
  const isColumn = b.shape.length === 1;
  const [aShape, bShape] = [isRow ? [1, ...a.shape] : a.shape, isColumn ? [...b.shape, 1] : b.shape];
  const [m, k] = aShape.slice(-2) as [number, number];
  const n = transposeB ? bShape.at(-2)! : bShape.at(-1)!;
  const { shape } = output!;
  const batch = shape.slice(0, shape.length - (isRow ? 0 : 1) - (isColumn ? 0 : 1));
  const left = broadcast(inputs[0]!, aShape, [...batch, m, k]);
  const right = broadcast(inputs[1]!, bShape, [...batch, ...(transposeB ? [n, k] : [k, n])]);
  const factor = scale === 1 || scale === undefined ? 1 : symbolOf(`scale ${scale}`);
  return Array.from({ length: output!.size }, (_, at) => {
    const [i, j] = [Math.floor(at / n), at % n];
    const step = Math.floor(i / m);
    let sum = 0;
    for (let l = 0; l < k; l++) {
      const place = transposeB ? step * n * k + j * k + l : step * n * k + l * n + j;
      sum = plus(sum, times(left[i * k + l]!, right[place]!));
    }
    const scaledSum = times(sum, factor);
    return inputs[2] ? plus(inputs[2][at]!, scaledSum) : scaledSum;
  });
}

/** Ops that multiply tensors in place by one factor. */
function scaled({ outputs }: Call, inputs: readonly Values[]): Values[] {
  const factor = symbolOf('factor', inputs.slice(outputs.length).flat());
  return outputs.map((_, i) => inputs[i]!.map((value) => times(value, factor)));
}
