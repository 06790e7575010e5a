import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { Device, DType, Shape, Tensor } from '../../src/index.ts';
import { type ElementwiseCase, elementwiseCases } from './elementwise/elementwise.ts';
import { relativeError, sample, unitRoundoff } from './support/samples.ts';

const broadcasts: readonly (readonly Shape[])[] = [
  [
    [4, 5],
    [4, 5],
  ],
  [[2, 3, 4], [4]],
  [
    [3, 1],
    [1, 5],
  ],
  [[], [2, 2]],
  [[7], []],
];

const everyLowDType: readonly DType[] = ['float16', 'bfloat16'];

/** The op's values in float64, by plain JavaScript with NumPy's broadcasting. */
function referenceValues(c: ElementwiseCase, inputs: readonly Tensor[], shape: Shape): number[] {
  const flat = inputs.map((input) => t.scope(() => t.contiguous(t.expand(input, shape)).toFlatArray()));
  return flat[0]!.map((_, i) => c.reference(...flat.map((values) => values[i]!)));
}

function inputsFor(c: ElementwiseCase, shapes: readonly Shape[], dtype: DType, device: Device): Tensor[] {
  return c.domain.map((domain, i) => sample(shapes[i]!, { dtype, domain, seed: 10 + i }, device));
}

/** What is tried on a device. */
export interface ElementwiseOptions {
  /** Whether it computes in float64; gradients are then compared to finite differences, otherwise to the CPU's. */
  readonly float64: boolean;
  /** Dtypes besides float32 and float64. Default float16 and bfloat16. */
  readonly lowDTypes?: readonly DType[];
  /** Fewer shapes, and numbers as operands of `sub` alone: for a device that compiles slowly. */
  readonly brief?: boolean;
}

/** Values, dtypes, broadcasting, strided inputs and gradients of every element-wise op on one device. */
export function describeElementwise(
  open: () => Device,
  options: ElementwiseOptions,
  all: readonly ElementwiseCase[] = elementwiseCases,
): void {
  const { brief = false } = options;
  const cases = all.filter(({ name }) => !brief || !/number/.test(name) || /sub/.test(name));
  const shapesTried = brief ? broadcasts.slice(0, 2) : broadcasts;
  describe.each(cases)('$name', (c) => {
    const { float64, lowDTypes = everyLowDType } = options;
    const dtypes: readonly DType[] = [...(float64 ? ['float64' as const] : []), 'float32', ...lowDTypes];
    it.each(dtypes)('agrees with float64 in %s, with broadcasting', (dtype) => {
      for (const shapes of shapesTried) {
        t.scope(() => {
          const inputs = inputsFor(c, shapes, dtype, open());
          const y = c.fn(...inputs);
          const error = relativeError(y.toFlatArray(), referenceValues(c, inputs, y.shape));
          expect(error).toBeLessThanOrEqual(4 * unitRoundoff[dtype]!);
        });
      }
    });

    it('reads strided and offset views', () => {
      t.scope(() => {
        const views = c.domain.map((domain, i) =>
          t.transpose(t.slice(sample([6, 5, 4], { domain, seed: 20 + i }, open()), 1, 1, 5, 2), 0, 2),
        );
        const y = c.fn(...views);
        expect(y.shape).toEqual([4, 2, 6]);
        expect(relativeError(y.toFlatArray(), referenceValues(c, views, y.shape))).toBeLessThanOrEqual(
          2 ** -22,
        );
      });
    });

    // Registered, not skipped: which of them exists follows from the op and the device.
    if (!c.differentiable) return;
    if (float64) itsGradientIsThatOfDifferences(c, open);
    else itsGradientIsTheCpus(c, open);
  });
}

function itsGradientIsThatOfDifferences(c: ElementwiseCase, open: () => Device): void {
  it('has the gradient that finite differences show', () => {
    for (const shapes of broadcasts.slice(0, 3)) {
      t.scope(() => t.checkGradients((...x) => c.fn(...x), inputsFor(c, shapes, 'float64', open())));
    }
  });
}

function itsGradientIsTheCpus(c: ElementwiseCase, open: () => Device): void {
  it('has the gradients that the CPU has', () => {
    t.scope(() => {
      const gradients = [t.device('cpu'), open()].map((device) => {
        const leaves = inputsFor(c, [[5, 6], [6]], 'float32', device).map((leaf) => leaf.requiresGrad_());
        t.sum(c.fn(...leaves)).backward();
        return leaves.flatMap((leaf) => leaf.grad!.toFlatArray());
      });
      expect(relativeError(gradients[1]!, gradients[0]!)).toBeLessThanOrEqual(2 ** -20);
    });
  });
}

/** Indices of a row-major tensor, one list for each element. */
function indices(shape: Shape): number[][] {
  return shape.reduce<number[][]>(
    (all, length) => all.flatMap((head) => Array.from({ length }, (_, i) => [...head, i])),
    [[]],
  );
}

export function describeReductions(open: () => Device): void {
  const folds = {
    sum: (values: number[]) => values.reduce((a, b) => a + b, 0),
    mean: (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length,
    max: (values: number[]) => values.reduce((a, b) => Math.max(a, b)),
  };
  const shapes: readonly [Shape, readonly number[]][] = [
    [[5], [0]],
    [[3, 4, 5], [2]],
    [[3, 4, 5], [0]],
    [[3, 4, 5], [1]],
    [
      [3, 4, 5],
      [0, 2],
    ],
    [
      [3, 4, 5],
      [0, 1, 2],
    ],
    [[700, 3], [0]],
    [[2, 3000], [1]],
    [[70000], [0]],
  ];
  describe.each(['sum', 'mean', 'max'] as const)('%s', (name) => {
    it.each(shapes)('of %j over %j', (shape, dims) => {
      t.scope(() => {
        const x = sample(shape, { domain: [-1, 2], seed: 5 }, open());
        const flat = x.toFlatArray();
        const groups = new Map<string, number[]>();
        indices(shape).forEach((index, i) => {
          const key = index.filter((_, d) => !dims.includes(d)).join();
          const group = groups.get(key);
          if (group) group.push(flat[i]!);
          else groups.set(key, [flat[i]!]);
        });
        const y = t[name](x, { dims });
        expect(y.shape).toEqual(shape.filter((_, d) => !dims.includes(d)));
        // Each of n consecutive additions may round by half a unit; they partly cancel.
        const tolerance = 2 ** -23 * Math.sqrt(x.size);
        expect(relativeError(y.toFlatArray(), [...groups.values()].map(folds[name]))).toBeLessThanOrEqual(
          tolerance,
        );
        expect(t[name](x, { dims, keepDims: true }).shape).toEqual(
          shape.map((n, d) => (dims.includes(d) ? 1 : n)),
        );
      });
    });

    it('lets NaN win', () => {
      t.scope(() => {
        const x = t.tensor(
          [
            [1, NaN, 2],
            [3, 4, 5],
          ],
          { device: open() },
        );
        const [first, second] = t[name](x, { dims: 1 }).toFlatArray();
        expect(first).toBeNaN();
        expect(second).toBe(folds[name]([3, 4, 5]));
      });
    });
  });
}

export function describeMatmul(open: () => Device): void {
  const shapes: readonly [Shape, Shape][] = [
    [
      [3, 4],
      [4, 5],
    ],
    [
      [1, 7],
      [7, 1],
    ],
    [
      [2, 3, 4],
      [4, 5],
    ],
    [
      [2, 3, 4],
      [2, 4, 5],
    ],
    [
      [2, 1, 3, 4],
      [3, 4, 2],
    ],
    [[4], [4, 3]],
    [[2, 3, 4], [4]],
    [
      [65, 130],
      [130, 33],
    ],
  ];
  const layouts = ['plain', 'a transposed', 'b transposed', 'sliced'] as const;
  it.each(shapes.flatMap(([a, b]) => layouts.map((layout) => [a, b, layout] as const)))(
    'matmul %j by %j, %s',
    (shapeA, shapeB, layout) => {
      t.scope(() => {
        const a = laidOut(shapeA, layout === 'a transposed', layout === 'sliced', 31, open());
        const b = laidOut(shapeB, layout === 'b transposed', layout === 'sliced', 32, open());
        const y = t.matmul(a, b, { scale: 0.5 });
        const expected = referenceMatmul(a, b).map((value) => value / 2);
        expect(relativeError(y.toFlatArray(), expected)).toBeLessThanOrEqual(2 ** -20);
      });
    },
  );
}

/** Random values of `shape`, stored transposed or inside a larger tensor. */
function laidOut(shape: Shape, transposed: boolean, sliced: boolean, seed: number, device: Device): Tensor {
  if (transposed && shape.length > 1) {
    return t.transpose(sample([...shape.slice(0, -2), shape.at(-1)!, shape.at(-2)!], { seed }, device));
  }
  if (sliced) return t.slice(sample([...shape.slice(0, -1), shape.at(-1)! + 3], { seed }, device), -1, 2, -1);
  return sample(shape, { seed }, device);
}

function referenceMatmul(a: Tensor, b: Tensor): number[] {
  const left = a.rank === 1 ? t.unsqueeze(a, 0) : a;
  const right = b.rank === 1 ? t.unsqueeze(b, 1) : b;
  const batch = Math.max(left.rank, right.rank) - 2;
  const lead = Array.from({ length: batch }, (_, i) =>
    Math.max(left.shape[left.rank - 2 - batch + i] ?? 1, right.shape[right.rank - 2 - batch + i] ?? 1),
  );
  const [m, k, n] = [left.shape.at(-2)!, left.shape.at(-1)!, right.shape.at(-1)!];
  const x = t.contiguous(t.expand(left, [...lead, m, k])).toFlatArray();
  const y = t.contiguous(t.expand(right, [...lead, k, n])).toFlatArray();
  return indices([...lead, m, n]).map((index, flat) => {
    const [i, j] = [index.at(-2)!, index.at(-1)!];
    const product = Math.floor(flat / (m * n));
    let sum = 0;
    for (let l = 0; l < k; l++) sum += x[(product * m + i) * k + l]! * y[(product * k + l) * n + j]!;
    return sum;
  });
}
