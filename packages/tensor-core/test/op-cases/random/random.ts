import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { randint, randn, truncatedNormal, uniform } from '../../../src/ops/random/random.ts';
import { Generator } from '../../../src/tensor/random/generator.ts';
import { normalCdf } from '../../../src/tensor/random/normal-cdf.ts';
import type { OpenDevice } from '../support/vector-jacobian.ts';

const count = 40_000;

/** The largest distance between the distribution of `values` and `cdf`, times √n (Kolmogorov & Smirnov). */
function kolmogorovSmirnov(values: readonly number[], cdf: (x: number) => number): number {
  const sorted = Float64Array.from(values).sort();
  let distance = 0;
  sorted.forEach((value, i) => {
    const p = cdf(value);
    distance = Math.max(distance, p - i / sorted.length, (i + 1) / sorted.length - p);
  });
  return distance * Math.sqrt(sorted.length);
}

function moments(values: readonly number[]): { mean: number; std: number } {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, std: Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length) };
}

// The chance that an honest sample exceeds it is 0.0002.
const kolmogorovLimit = 2.2;

/** The random fills on one device. The values of `cpu` are those that every device must give. */
export function describeRandom(open: OpenDevice): void {
  const device = () => ({ device: open() });
  const drawn = (draw: () => Tensor) => t.scope(() => draw().toFlatArray());

  it('uniform is even on its interval', () => {
    const values = drawn(() => uniform([count], { ...device(), low: -2, high: 3, seed: 1 }));
    expect(kolmogorovSmirnov(values, (x) => (x + 2) / 5)).toBeLessThan(kolmogorovLimit);
    expect(values.every((x) => x >= -2 && x < 3)).toBe(true);
  });

  it.each<[DType, number, number]>([
    ['bfloat16', 1, 2],
    ['bfloat16', 100, 101],
    ['float16', -2, -1],
    ['float16', -1, 0.3],
  ])('uniform in %s from %d stays below %d, though the dtype rounds', (dtype, low, high) => {
    const values = drawn(() => uniform([count], { ...device(), dtype, low, high, seed: 9 }));
    expect(values.every((x) => x >= low - 2 ** -11 && x < high)).toBe(true);
    expect(drawn(() => uniform([2], { ...device(), dtype, low: high, high, seed: 9 }))).toEqual(
      drawn(() => t.full([2], high, { dtype })),
    );
  });

  it('randn is normal', () => {
    const values = drawn(() => randn([count], { ...device(), seed: 2 }));
    expect(kolmogorovSmirnov(values, normalCdf)).toBeLessThan(kolmogorovLimit);
    const { mean, std } = moments(drawn(() => randn([count], { ...device(), mean: 5, std: 0.1, seed: 3 })));
    expect(Math.abs(mean - 5)).toBeLessThan(4 * (0.1 / Math.sqrt(count)));
    expect(Math.abs(std / 0.1 - 1)).toBeLessThan(4 / Math.sqrt(2 * count));
  });

  it('truncatedNormal is normal inside its cuts', () => {
    const [mean, std, low, high] = [0.5, 2, -1, 3];
    const values = drawn(() => truncatedNormal([count], { ...device(), mean, std, low, high, seed: 4 }));
    const [from, to] = [low, high].map((cut) => normalCdf((cut - mean) / std)) as [number, number];
    const cdf = (x: number) => (normalCdf((x - mean) / std) - from) / (to - from);
    expect(kolmogorovSmirnov(values, cdf)).toBeLessThan(kolmogorovLimit);
    expect(values.every((x) => x >= low && x <= high)).toBe(true);
  });

  it.each([
    [0, 1, 10, 11],
    [0, 1, -11, -10],
    [3, 0.5, 7, 9],
    [0, 1, 30, Number.MAX_VALUE],
  ])(
    'truncatedNormal of mean %d and deviation %d is normal in a tail, from %d to %d',
    (mean, std, low, high) => {
      const values = drawn(() =>
        truncatedNormal([count], { ...device(), mean, std, low, high, seed: 4, dtype: 'float64' }),
      );
      // The tail is taken below the mean, where Φ keeps its digits.
      const [far, near] = low > mean ? [mean - high, mean - low] : [low - mean, high - mean];
      const [from, to] = [far, near].map((x) => normalCdf(x / std)) as [number, number];
      const below = (x: number) => (normalCdf(-Math.abs(x - mean) / std) - from) / (to - from);
      const cdf = (x: number) => (low > mean ? 1 - below(x) : below(x));
      expect(kolmogorovSmirnov(values, cdf)).toBeLessThan(kolmogorovLimit);
      expect(values.every((x) => x >= low && x <= high)).toBe(true);
    },
  );

  it('truncatedNormal stays inside cuts that the dtype rounds, and is the mean without a deviation', () => {
    const cuts = { low: -0.3333, high: 0.3333, std: 5 };
    const values = drawn(() =>
      truncatedNormal([count], { ...device(), ...cuts, dtype: 'bfloat16', seed: 4 }),
    );
    expect(values.every((x) => Math.abs(x) <= 0.3333)).toBe(true);
    for (const [mean, low, high] of [
      [2, -2, 2],
      [1, 1, 1],
      [0, -1, 1],
    ] as const) {
      const same = drawn(() => truncatedNormal([3], { ...device(), mean, low, high, std: 0 }));
      expect(same).toEqual([mean, mean, mean]);
    }
  });

  it('randint gives each integer equally often', () => {
    const values = drawn(() => randint(-3, 7, [count], { ...device(), seed: 5 }));
    const counts = Array.from({ length: 10 }, (_, i) => values.filter((value) => value === i - 3).length);
    expect(counts.reduce((a, b) => a + b, 0)).toBe(count);
    // χ² of 9 degrees of freedom, exceeded once in 10,000.
    expect(counts.reduce((sum, n) => sum + (n - count / 10) ** 2 / (count / 10), 0)).toBeLessThan(33.7);
    expect(randint(0, 5, [1], { ...device(), dtype: 'int32' }).dtype).toBe('int32');
  });

  it.each(['float64', 'float32', 'float16', 'bfloat16'] as const)(
    'gives every device the same bits in %s',
    (dtype) => {
      const draws: ((options: { device: t.Device | 'cpu'; dtype: DType; seed: number }) => Tensor)[] = [
        (options) => uniform([5001], { ...options, low: -1, high: 0.3 }),
        (options) => randn([5001], { ...options, mean: 0.1, std: 3 }),
        (options) => truncatedNormal([5001], { ...options, std: 0.02, low: -0.06, high: 0.06 }),
      ];
      for (const draw of draws) {
        t.scope(() => {
          const here = draw({ device: open(), dtype, seed: 2 ** 45 + 11 }).toTypedArray();
          expect(here).toEqual(draw({ device: 'cpu', dtype, seed: 2 ** 45 + 11 }).toTypedArray());
          expect(here).not.toEqual(draw({ device: open(), dtype, seed: 2 ** 45 + 12 }).toTypedArray());
        });
      }
    },
  );

  it.each([1, 3, 4, 5, 4095, 4097, 8193])('gives the same first %i, however many are asked for', (asked) => {
    const draws: ((shape: number[]) => Tensor)[] = [
      ...(['float64', 'float32', 'bfloat16'] as const).map((dtype) => (shape: number[]) => {
        return randn(shape, { ...device(), dtype, seed: 7 });
      }),
      (shape) => randint(0, 99, shape, { ...device(), dtype: 'int64', seed: 7 }),
    ];
    for (const draw of draws)
      expect(drawn(() => draw([asked]))).toEqual(drawn(() => draw([9000])).slice(0, asked));
  });

  it('gives every device the same integers', () => {
    for (const [low, high] of [
      [0, 50257],
      [-(2 ** 31), 2 ** 31],
      [2 ** 40, 2 ** 40 + 3],
    ] as const) {
      t.scope(() => {
        const here = randint(low, high, [999], { ...device(), seed: 6 }).toTypedArray();
        expect(here).toEqual(randint(low, high, [999], { seed: 6 }).toTypedArray());
      });
    }
  });

  describe('a generator', () => {
    it('goes on where it stopped', () => {
      t.scope(() => {
        const generator = new Generator(7);
        const parts = [uniform([6], { ...device(), generator }), uniform([8], { ...device(), generator })];
        expect(generator.offset).toBe(4);
        const whole = uniform([16], { ...device(), seed: 7 }).toFlatArray();
        expect(parts[0]!.toFlatArray()).toEqual(whole.slice(0, 6));
        expect(parts[1]!.toFlatArray()).toEqual(whole.slice(8));
        const resumed = new Generator(7, 2);
        expect(uniform([8], { ...device(), generator: resumed }).toFlatArray()).toEqual(whole.slice(8));
      });
    });

    it('is shared where none is given, and makes leaves on request', () => {
      t.scope(() => {
        const [a, b] = [randn([4], device()), randn([4], { ...device(), requiresGrad: true })];
        expect(a!.toFlatArray()).not.toEqual(b!.toFlatArray());
        expect(b!.requiresGrad && b!.isLeaf).toBe(true);
      });
    });
  });

  it('names what it cannot draw', () => {
    expect(() => randn([2], { ...device(), dtype: 'int32' })).toThrow('randn: takes a floating-point dtype');
    expect(() => randint(0, 5, [2], { ...device(), dtype: 'float32' })).toThrow(
      'randint: takes int32 or int64',
    );
    expect(() => randint(5, 5, [2], device())).toThrow('randint: [5, 5) must hold');
    expect(() => randint(0, 2 ** 31 + 1, [2], { ...device(), dtype: 'int32' })).toThrow(
      'randint: [0, 2147483649) leaves int32',
    );
    expect(() => uniform([2], { ...device(), dtype: 'float16', high: 1e5 })).toThrow(
      'uniform: 100000 is beyond what float16 holds; take a wider dtype.',
    );
    expect(() => uniform([2], { ...device(), dtype: 'float64', low: -1e308, high: 1e308 })).toThrow(
      'is further than float64 holds',
    );
    expect(() => truncatedNormal([2], { ...device(), low: 40, high: 41 })).toThrow(
      'truncatedNormal: [40, 41] lies more than 36 standard deviations of 1 from the mean 0',
    );
    expect(() => new Generator(-1)).toThrow('Generator: the seed must be a whole number');
  });
}
