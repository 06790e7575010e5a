import { describe, expect, it } from 'vitest';
import { type DType, DTypeError, fromBits16, toBits16 } from '../../src/index.ts';

/** The value of IEEE's fields, straight from the definition. */
function valueOf(bits: number, exponentBits: number): number {
  const mantissaBits = 15 - exponentBits;
  const bias = 2 ** (exponentBits - 1) - 1;
  const exponent = (bits >> mantissaBits) & (2 ** exponentBits - 1);
  const mantissa = bits & (2 ** mantissaBits - 1);
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 2 ** exponentBits - 1) return mantissa === 0 ? sign * Infinity : NaN;
  const fraction = mantissa / 2 ** mantissaBits;
  return exponent === 0 ? sign * fraction * 2 ** (1 - bias) : sign * (1 + fraction) * 2 ** (exponent - bias);
}

describe.each([
  ['float16', 5],
  ['bfloat16', 8],
] as const)('%s', (dtype, exponentBits) => {
  const every = Array.from({ length: 2 ** 16 }, (_, bits) => bits);

  it('reads every pattern', () => {
    const wrong = every.filter((bits) => !Object.is(fromBits16(dtype, bits), valueOf(bits, exponentBits)));
    expect(wrong).toEqual([]);
  });

  it('writes back every pattern but those of NaN, which stay NaN', () => {
    const wrong = every.filter((bits) => {
      const value = fromBits16(dtype, bits);
      const written = toBits16(dtype, value);
      return Number.isNaN(value) ? !Number.isNaN(fromBits16(dtype, written)) : written !== bits;
    });
    expect(wrong).toEqual([]);
  });

  it('rounds to nearest, and halves to even, up to infinity', () => {
    const infinity = toBits16(dtype, Infinity);
    const wrong = every.slice(0, infinity).filter((bits) => {
      const low = fromBits16(dtype, bits);
      // Behind the largest number comes the first that is out of range.
      const step = low - (bits === 0 ? -fromBits16(dtype, 1) : fromBits16(dtype, bits - 1));
      const high = bits + 1 === infinity ? low + step : fromBits16(dtype, bits + 1);
      const half = (low + high) / 2;
      const ulp = (high - low) * 2 ** -10;
      const even = bits % 2 === 0 ? bits : bits + 1;
      // Numbers below float32's smallest are rounded before they get here.
      return [1, -1].some((sign) => {
        const offset = sign < 0 ? 0x8000 : 0;
        return (
          toBits16(dtype, sign * half) !== even + offset ||
          (Math.fround(half - ulp) === half - ulp &&
            toBits16(dtype, sign * (half - ulp)) !== bits + offset) ||
          (Math.fround(half + ulp) === half + ulp &&
            toBits16(dtype, sign * (half + ulp)) !== bits + 1 + offset)
        );
      });
    });
    expect(wrong.map((bits) => bits.toString(16))).toEqual([]);
  });

  it('keeps the signs of zero and infinity', () => {
    expect(toBits16(dtype, -0)).toBe(0x8000);
    expect(toBits16(dtype, -1e300)).toBe(toBits16(dtype, Infinity) | 0x8000);
  });
});

it.each<[DType, unknown]>([
  ['float32', 1],
  ['float16', '1'],
  ['bfloat16', undefined],
  ['float16', 1n],
])('%s with %o has no 16 bits', (dtype, value) => {
  expect(() => toBits16(dtype, value as number)).toThrow(DTypeError);
  expect(() => toBits16(dtype, value as number)).toThrow('toBits16: takes float16 or bfloat16 and a number');
});

it.each<[DType, unknown]>([
  ['float32', 1],
  ['float16', 0x10000],
  ['float16', -1],
  ['bfloat16', 0.5],
  ['bfloat16', '1'],
  ['float16', 1n],
])('%s is not read from %o', (dtype, bits) => {
  expect(() => fromBits16(dtype, bits as number)).toThrow(DTypeError);
  expect(() => fromBits16(dtype, bits as number)).toThrow('fromBits16: takes float16 or bfloat16');
});
