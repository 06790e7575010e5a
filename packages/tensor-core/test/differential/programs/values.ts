import { type DType, type TypedArray, isFloatingPoint } from '../../../src/index.ts';
import { encode } from './host-data.ts';
import type { RandomSource } from './random-source.ts';

/**
 * How elements are drawn. `any` takes one of the next three; `ordinary` is normally distributed around 0, `positive`
 * lies in [0.25, 4), `whole` are small whole numbers, of which many are equal; `special` mixes in NaN, infinities,
 * signed zeros, subnormal, huge and tiny ones, and the ends of the integers' ranges; `powers` are special ones whose
 * fourth powers are finite in the dtype, for ops whose formula would overflow in PyTorch too; `offset` are ordinary ones
 * around a number that is up to 10,000 times larger.
 */
export type ValueKind = 'any' | 'ordinary' | 'positive' | 'whole' | 'special' | 'powers' | 'offset';

const ranges: Partial<Record<DType, readonly [bigint, bigint]>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
};

/** Largest finite, smallest normal and smallest subnormal value. */
const extremes: Partial<Record<DType, readonly number[]>> = {
  float16: [65504, 2 ** -14, 2 ** -24],
  bfloat16: [2 ** 127 * (2 - 2 ** -7), 2 ** -126, 2 ** -133],
  float32: [2 ** 127 * (2 - 2 ** -23), 2 ** -126, 2 ** -149],
  float64: [Number.MAX_VALUE, 2 ** -1022, 2 ** -1074],
};

export function drawValues(random: RandomSource, dtype: DType, size: number, kind: ValueKind): TypedArray {
  const chosen =
    kind === 'any'
      ? random.weighted<ValueKind>([
          [50, 'ordinary'],
          [20, 'whole'],
          [30, 'special'],
        ])
      : kind;
  const center = chosen === 'offset' && isFloatingPoint(dtype) ? drawCenter(random) : 0;
  return encode(
    dtype,
    Array.from({ length: size }, () => {
      const value = drawValue(random, dtype, chosen);
      return typeof value === 'number' ? center + value : value;
    }),
  );
}

function drawCenter(random: RandomSource): number {
  return (random.chance(0.5) ? 1 : -1) * 10 ** random.integer(1, 4);
}

function drawValue(random: RandomSource, dtype: DType, kind: ValueKind): number | bigint {
  if (dtype === 'bool') return random.integer(0, 1);
  const range = ranges[dtype];
  if (range) return drawInteger(random, range, kind);
  if (kind === 'positive') return 0.25 + 3.75 * random.uniform();
  if (kind === 'whole') return random.integer(-3, 3);
  if ((kind === 'special' || kind === 'powers') && random.chance(0.5)) {
    const value = drawSpecial(random, dtype);
    return kind === 'powers' && Number.isFinite(value) && value ** 4 > extremes[dtype]![0]! ? 1 : value;
  }
  return 2 * random.normal();
}

function drawInteger(random: RandomSource, [low, high]: readonly [bigint, bigint], kind: ValueKind) {
  if (kind === 'positive') return random.integer(1, 6);
  if (kind === 'special' && random.chance(0.5)) {
    const near = BigInt(random.integer(0, 2));
    return random.pick([low + near, high - near, 2n ** 24n + near, (high >> 2n) + near, 0n, -1n]);
  }
  return random.integer(-5, 5);
}

function drawSpecial(random: RandomSource, dtype: DType): number {
  const [largest, normal, subnormal] = extremes[dtype] as readonly [number, number, number];
  const magnitude = random.pick([
    0,
    0,
    NaN,
    Infinity,
    largest,
    largest / 4,
    normal,
    subnormal,
    normal * 0.75,
    Math.sqrt(largest),
    Math.sqrt(normal),
    1,
    0.5,
    10 + 10 * random.uniform(),
    60 + 40 * random.uniform(),
  ]);
  return random.chance(0.5) ? -magnitude : magnitude;
}
