import { readFileSync } from 'node:fs';
import { kernelSource } from '../../../../src/op/kernel-arguments/kernel-source.ts';
import { expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

/** What split_half.cuh has in a summary; factors are exponents, and each pair is [0, 0] unless it is given. */
interface Summary {
  /** The lowest and the highest of the lines. */
  readonly factors?: readonly [number, number];
  /** By the largest and by the second largest element. */
  readonly losses?: readonly [number, number];
  /** Down to the smallest and to the second smallest element. */
  readonly ranges?: readonly [number, number];
}

type Way = 'by row' | 'by line' | 'exactly';
const ways: readonly Way[] = ['by row', 'by line', 'exactly'];
const none = [0, 0] as const;

const bitsOf = ({ factors = none, losses = none, ranges = none }: Summary) =>
  ((factors[0] + 127) | ((factors[1] + 127) << 8) | (losses[0] << 16) | (losses[1] << 20) | (ranges[0] << 24) | (ranges[1] << 28)) >>> 0; // prettier-ignore

const headers = { 'split_half.cuh': readFileSync(kernelSource('split_half.cuh'), 'utf8') };
const spec = { source: new URL('ways.cu', import.meta.url), headers, name: 'ways', parameters: 'ppp' };
const waysOp = t.defineOp({
  name: 'ways',
  autocast: 'none',
  infer: ([a]) => [a!],
  cuda: {
    kind: 'custom',
    launch: (context, [a, b], [way]) =>
      context.kernel(spec).launch([1, 1, 1], a!.size, 0, [a!.address, b!.address, way!.address]),
  },
  cpu: { kind: 'host', run: () => {} },
});

/** Losses of one side against ranges of the other: bounded where a loss and its range add up to 12 or less. */
const losses: readonly (readonly [losses: [number, number], ranges: [number, number], bounded: boolean])[] = [
  [[0, 0], [15, 15], true],
  [[12, 15], [0, 15], true],
  [[15, 12], [15, 0], true],
  [[6, 15], [6, 15], true],
  [[15, 6], [15, 6], true],
  [[13, 13], [0, 0], false],
  [[7, 15], [6, 15], false],
  [[15, 7], [15, 6], false],
  [[6, 7], [7, 6], false],
  [[8, 6], [6, 7], false],
  [[15, 15], [0, 0], false],
];

const cases: readonly (readonly [a: Summary, b: Summary, way: Way])[] = [
  ...losses.flatMap(([losses, ranges, bounded]) => {
    const way: Way = bounded ? 'by row' : 'exactly';
    return [[{ losses }, { ranges }, way] as const, [{ ranges }, { losses }, way] as const];
  }),
  // Factors of their own.
  [{ factors: [-20, 20] }, {}, 'by row'],
  [{}, { factors: [-20, 20] }, 'by line'],
  // A product of factors, and 2^-11 of it, are floats, and no sum overflows.
  [{ factors: [40, 40] }, { factors: [50, 50] }, 'by row'],
  [{ factors: [0, 41] }, { factors: [50, 50] }, 'exactly'],
  [{ factors: [0, 0] }, { factors: [0, 91] }, 'exactly'],
  [{ factors: [-83, 0] }, { factors: [-55, -55] }, 'by row'],
  [{ factors: [-83, 0] }, { factors: [-56, -56] }, 'by line'],
  [{ factors: [-113, 0] }, { factors: [-25, -25] }, 'by row'],
  [{ factors: [-113, 0] }, { factors: [-26, -26] }, 'exactly'],
  // The first of two steps is exact.
  [{ factors: [-90, 0] }, { factors: [0, 1] }, 'by line'],
  [{ factors: [-91, 0] }, { factors: [0, 1] }, 'exactly'],
  [{ factors: [0, 90] }, { factors: [-30, -20] }, 'by line'],
  [{ factors: [0, 91] }, { factors: [-30, -20] }, 'exactly'],
];

it.skipIf(!hostCompilerVersion())('blocks are multiplied exactly where no factor and no bound serve', () => {
  const device = openEmulatedDevice();
  const found = t.scope(() => {
    const [a, b] = [0, 1].map((side) => {
      const bits = Uint32Array.from(cases, (pair) => bitsOf(pair[side as 0 | 1]));
      return t.fromTypedArray(new Int32Array(bits.buffer), [cases.length], { device });
    });
    return t.applyOne(waysOp, [a!, b!], undefined).toFlatArray();
  });
  const told = cases.map(([a, b], i) => [a, b, ways[found[i]!]]);
  expect(told).toEqual(cases);
});
