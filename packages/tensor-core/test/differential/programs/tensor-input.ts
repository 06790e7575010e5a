import * as t from '../../../src/index.ts';
import type { DType, Device, Shape, Tensor, TypedArray } from '../../../src/index.ts';
import type { RandomSource } from './random-source.ts';
import { type ValueKind, drawValues } from './values.ts';

/** One step from a base tensor to the view that an op is given. */
export interface ViewStep {
  readonly ours: (x: Tensor) => Tensor;
  /** What Python writes after the tensor. */
  readonly torch: string;
}

/** A base tensor and the view of it that an op is given. */
export interface TensorInput {
  readonly dtype: DType;
  readonly baseShape: Shape;
  readonly data: TypedArray;
  readonly views: readonly ViewStep[];
  /** After the views. */
  readonly shape: Shape;
  readonly requiresGrad: boolean;
  /** The index of an earlier input whose base this one is a view of. */
  readonly aliasOf?: number;
}

export interface TensorChoices {
  readonly dtype?: DType;
  readonly shape?: Shape;
  readonly values?: ValueKind;
  /** False for tensors that never require a gradient. */
  readonly requiresGrad?: boolean;
  /** False keeps the base itself, contiguous. */
  readonly views?: boolean;
}

const dtypeWeights: readonly (readonly [number, DType])[] = [
  [32, 'float32'],
  [15, 'float64'],
  [12, 'float16'],
  [12, 'bfloat16'],
  [10, 'int32'],
  [12, 'int64'],
  [7, 'bool'],
];

export function drawDType(random: RandomSource): DType {
  return random.weighted(dtypeWeights);
}

/** A floating-point dtype, or, once in a while, one that ops for floating-point tensors must handle or refuse. */
export function drawMostlyFloat(random: RandomSource): DType {
  return random.chance(0.05) ? drawDType(random) : random.weighted(dtypeWeights.slice(0, 4));
}

export function drawShape(random: RandomSource, minRank = 0, maxRank = 4): Shape {
  const rank = Math.max(
    minRank,
    Math.min(
      maxRank,
      random.weighted([
        [10, 0],
        [25, 1],
        [35, 2],
        [22, 3],
        [8, 4],
      ]),
    ),
  );
  return Array.from({ length: rank }, () => drawLength(random));
}

export function drawLength(random: RandomSource): number {
  return random.weighted([
    [4, 0],
    [18, 1],
    [25, 2],
    [25, 3],
    [18, 4],
    [10, 5],
  ]);
}

export function drawTensor(random: RandomSource, choices: TensorChoices = {}): TensorInput {
  const dtype = choices.dtype ?? drawDType(random);
  const shape = choices.shape ?? drawShape(random);
  const { baseShape, views } = drawViews(random, shape, choices.views ?? true);
  const size = baseShape.reduce((product, length) => product * length, 1);
  const requiresGrad = choices.requiresGrad !== false && t.isFloatingPoint(dtype) && random.chance(0.7);
  return {
    dtype,
    baseShape,
    data: drawValues(random, dtype, size, choices.values ?? 'any'),
    views,
    shape,
    requiresGrad,
  };
}

/** A base shape and the steps from it to `shape`, drawn from the end. */
function drawViews(random: RandomSource, shape: Shape, allowed: boolean) {
  const views: ViewStep[] = [];
  let baseShape = shape;
  const steps = allowed
    ? random.weighted([
        [50, 0],
        [35, 1],
        [15, 2],
      ])
    : 0;
  for (let i = 0; i < steps; i++) {
    const before = random.pick([beforePermute, beforeSlice, beforeSelect, beforeExpand])(random, baseShape);
    if (!before) continue;
    baseShape = before.shape;
    views.unshift(before.step);
  }
  return { baseShape, views };
}

interface Before {
  readonly shape: Shape;
  readonly step: ViewStep;
}

function beforePermute(random: RandomSource, shape: Shape): Before | null {
  if (shape.length < 2) return null;
  const order = random.shuffled(shape.map((_, i) => i));
  const before = new Array<number>(shape.length);
  order.forEach((from, to) => (before[from] = shape[to]!));
  return {
    shape: before,
    step: { ours: (x) => t.permute(x, order), torch: `.permute(${order.join(', ')})` },
  };
}

function beforeSlice(random: RandomSource, shape: Shape): Before | null {
  if (shape.length === 0) return null;
  const dimension = random.integer(0, shape.length - 1);
  const [start, step] = [random.integer(0, 2), random.integer(1, 3)];
  const length = shape[dimension]!;
  const end = length === 0 ? start : start + (length - 1) * step + 1;
  const whole = end + random.integer(0, 2);
  return {
    shape: shape.map((own, i) => (i === dimension ? whole : own)),
    step: {
      ours: (x) => t.slice(x, dimension, start, end, step),
      torch: `[${':, '.repeat(dimension)}${start}:${end}:${step}]`,
    },
  };
}

function beforeSelect(random: RandomSource, shape: Shape): Before {
  const dimension = random.integer(0, shape.length);
  const length = random.integer(1, 3);
  const index = random.integer(0, length - 1);
  return {
    shape: [...shape.slice(0, dimension), length, ...shape.slice(dimension)],
    step: { ours: (x) => t.select(x, dimension, index), torch: `.select(${dimension}, ${index})` },
  };
}

function beforeExpand(random: RandomSource, shape: Shape): Before | null {
  if (shape.length === 0) return null;
  const lead = random.chance(0.3) ? 1 : 0;
  const before = shape.slice(lead).map((length) => (random.chance(0.5) ? 1 : length));
  return { shape: before, step: { ours: (x) => t.expand(x, shape), torch: `.expand(${shape.join(', ')})` } };
}

/** The base tensor on a device, requiring a gradient if it should. */
export function makeBase({ dtype, baseShape, data, requiresGrad }: TensorInput, device: Device): Tensor {
  return t.fromTypedArray(data, baseShape, { dtype, device, requiresGrad });
}

/** The view that the op is given. */
export function viewOf(base: Tensor, { views }: TensorInput): Tensor {
  return views.reduce((x, { ours }) => ours(x), base);
}
