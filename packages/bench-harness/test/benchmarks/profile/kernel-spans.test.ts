import { describe, expect, it } from 'vitest';
import {
  busyUs,
  isMatrixProduct,
  kernelSpans,
  outermostOfEachName,
  phaseOf,
  selectSpans,
  totalUs,
} from '../../../src/benchmarks/profile/kernel-spans.ts';
import { packedProfile, type PackedProfile } from '../../../src/benchmarks/profile/packed-profile.ts';
import { toyProfileResult } from '../../fixtures/profiles.ts';

const spans = kernelSpans(toyProfileResult.steps);
const names = (list: typeof spans) => list.map(({ name }) => name);

describe('kernel spans', () => {
  it('survive the way through a record', () => {
    const stored = packedProfile.parse(JSON.parse(JSON.stringify(toyProfileResult.steps[0])));
    expect(kernelSpans([stored])).toEqual(kernelSpans([toyProfileResult.steps[0]!]));
  });

  it('know their op, ranges and step', () => {
    expect(spans).toHaveLength(10);
    expect(spans[6]).toMatchObject({ name: 'gemm', step: 1, startUs: 12, op: { name: 'matmul' } });
    expect(spans[6]!.ranges.map(({ name }) => name)).toEqual(['forward', 'attention.scores']);
    expect(spans[4]).toMatchObject({ op: null, ranges: [], work: null });
  });

  it("give an op's work to its longest kernel alone", () => {
    expect(spans[0]!.work).toBeNull();
    expect(spans[1]!.work).toEqual({ flops: 8_000_000, bytes: 4000 });
  });

  it("share an op's work by their time where it takes several launches of one kernel", () => {
    const step = structuredClone(toyProfileResult.steps[0]!);
    // The helper of the first product becomes another launch of the same kernel.
    step.kernels.name[0] = step.kernels.name[1]!;
    const [first, second] = kernelSpans([step]);
    expect([first!.durationUs, second!.durationUs]).toEqual([2, 10]);
    expect(first!.work!.flops + second!.work!.flops).toBeCloseTo(8_000_000);
    expect(second!.work!.bytes / first!.work!.bytes).toBeCloseTo(5);
  });

  it("give no kernel an op's work where it is spread over unlike kernels", () => {
    const step = structuredClone(toyProfileResult.steps[0]!);
    step.kernels.durationUs[0] = 30;
    step.kernels.durationUs[1] = 29;
    const first = step.kernels.op[0]!;
    step.kernels.op.push(first);
    step.kernels.name.push(step.kernels.name.at(-1)!);
    step.kernels.durationUs.push(28);
    for (const list of [step.kernels.kind, step.kernels.stream, step.kernels.startUs])
      list.push(list.at(-1)!);
    const spans = kernelSpans([step]);
    expect([spans[0], spans[1], spans.at(-1)].map((span) => span!.work)).toEqual([null, null, null]);
  });

  it('are selected by phase and by pattern', () => {
    expect(names(selectSpans(spans, { phase: 'backward', range: null }))).toEqual(['gemm', 'gemm']);
    expect(names(selectSpans(spans, { phase: 'all', range: 'attention.so*' }))).toEqual([
      'softmax_rows',
      'softmax_rows',
    ]);
    // A dot is a dot.
    expect(selectSpans(spans, { phase: 'all', range: 'attention?scores' })).toHaveLength(6);
    expect(selectSpans(spans, { phase: 'all', range: 'attentionXscores' })).toEqual([]);
    expect(selectSpans(spans, { phase: 'all', range: null })).toHaveLength(10);
    const [named] = spans.map((span) => ({ ...span, ranges: [{ ...span.ranges[0]!, name: 'a\nb😀' }] }));
    expect(selectSpans([named!], { phase: 'all', range: 'a*b?' })).toHaveLength(1);
  });

  it('know their phases and add up; overlapping kernels keep the device busy once', () => {
    const step = spans.filter((span) => span.step === 0);
    expect(step.map(phaseOf)).toEqual(['forward', 'forward', 'forward', 'backward', 'other']);
    expect(totalUs(step)).toBe(39);
    expect(busyUs(step)).toBe(39);
    const twin = { ...step[3]!, stream: 'cuda:0 stream 8', startUs: 50 };
    expect(busyUs([...step, twin])).toBe(39 + 10);
  });
});

/** A step of one range and one stream, of kernels `[name, startUs, durationUs, op]`; each op does 1000 FLOPs and 100 bytes. */
function packed(kernels: readonly (readonly [string, number, number, number])[]): PackedProfile {
  const opCount = Math.max(0, ...kernels.map(([, , , op]) => op + 1));
  const names = [...new Set(kernels.map(([name]) => name))];
  const strings = ['forward', 'matmul', 'float32', 'kernel', 'stream', ...names];
  const each = <T>(value: T) => Array.from({ length: opCount }, () => value);
  return {
    strings,
    wallUs: 100,
    droppedRecords: 0,
    ranges: { name: [0], parent: [-1] },
    ops: {
      name: each(1),
      range: each(0),
      dtype: each(2),
      isMatrixProduct: each(1),
      flops: each(1000),
      bytesMoved: each(100),
      allocatedBytes: each(0),
    },
    kernels: {
      name: kernels.map(([name]) => strings.indexOf(name)),
      kind: kernels.map(() => 3),
      stream: kernels.map(() => 4),
      startUs: kernels.map(([, startUs]) => startUs),
      durationUs: kernels.map(([, , durationUs]) => durationUs),
      op: kernels.map(([, , , op]) => op),
    },
  };
}

describe("the part of an op's work that a kernel carries", () => {
  const flops = (kernels: Parameters<typeof packed>[0]) =>
    kernelSpans([packed(kernels)]).map(({ work }) => work && work.flops);

  it('is all of it where the op has one kernel', () => {
    expect(
      kernelSpans([
        packed([
          ['a', 0, 10, 0],
          ['b', 10, 5, 1],
        ]),
      ]).map(({ work }) => work),
    ).toEqual([
      { flops: 1000, bytes: 100 },
      { flops: 1000, bytes: 100 },
    ]);
  });

  it('goes to the longest where that takes half of the time or more', () => {
    expect(
      flops([
        ['a', 0, 10, 0],
        ['b', 10, 6, 0],
        ['c', 16, 4, 0],
      ]),
    ).toEqual([1000, null, null]);
    expect(
      flops([
        ['a', 0, 10, 0],
        ['b', 10, 6, 0],
        ['c', 16, 5, 0],
      ]),
    ).toEqual([null, null, null]);
    expect(
      flops([
        ['b', 0, 6, 0],
        ['a', 6, 10, 0],
      ]),
    ).toEqual([null, 1000]);
  });

  it('is shared by time among launches of the longest name', () => {
    expect(
      flops([
        ['a', 0, 6, 0],
        ['b', 6, 5, 0],
        ['a', 11, 2, 0],
      ]),
    ).toEqual([750, null, 250]);
    // The same name in another op has a share of its own.
    expect(
      flops([
        ['a', 0, 6, 0],
        ['a', 6, 3, 1],
      ]),
    ).toEqual([1000, 1000]);
  });

  it('goes to the first of several that take equally long', () => {
    expect(
      flops([
        ['a', 0, 5, 0],
        ['b', 5, 5, 0],
      ]),
    ).toEqual([1000, null]);
  });

  it('is nothing for what took no time, and for what no op queued', () => {
    expect(flops([['a', 0, 0, 0]])).toEqual([null]);
    expect(
      flops([
        ['a', 0, 5, -1],
        ['a', 5, 5, -1],
      ]),
    ).toEqual([null, null]);
  });
});

it('spans hold every field of their kernel, op and ranges', () => {
  const profile = toyProfileResult.steps[0]!;
  expect(kernelSpans([profile, profile])[7]).toEqual({
    name: 'softmax_rows',
    kind: 'kernel',
    stream: 'cuda:0 stream 7',
    step: 1,
    startUs: 24,
    durationUs: 6,
    op: {
      name: 'softmax',
      index: 1,
      dtype: 'float32',
      isMatrixProduct: false,
      flops: 5000,
      allocatedBytes: 3000,
    },
    ranges: [
      { name: 'forward', step: 1, index: 0 },
      { name: 'attention.softmax', step: 1, index: 2 },
    ],
    work: { flops: 5000, bytes: 480_000 },
  });
  expect(kernelSpans([profile]).map(isMatrixProduct)).toEqual([true, true, false, true, false]);
});

describe('busyUs', () => {
  const busy = (...times: readonly [startUs: number, durationUs: number][]) =>
    busyUs(
      kernelSpans([packed(times.map(([startUs, durationUs]) => ['a', startUs, durationUs, -1] as const))]),
    );

  it.each<[number, [number, number][]]>([
    [0, []],
    [7, [[3, 7]]],
    [
      12,
      [
        [0, 5],
        [5, 7],
      ],
    ],
    [
      12,
      [
        [0, 5],
        [100, 7],
      ],
    ],
    [
      10,
      [
        [0, 10],
        [2, 3],
      ],
    ],
    [
      12,
      [
        [0, 10],
        [5, 7],
      ],
    ],
    [
      15,
      [
        [5, 10],
        [0, 10],
      ],
    ],
    [
      13,
      [
        [0, 10],
        [2, 3],
        [8, 5],
      ],
    ],
  ])('is %i of %j', (us, times) => expect(busy(...times)).toBe(us));
});

describe('selectSpans', () => {
  const [first] = spans;
  const inRange = (name: string, range: string) =>
    selectSpans([{ ...first!, ranges: [{ name, step: 0, index: 0 }] }], { phase: 'all', range }).length === 1;

  it.each([
    ['layers.0', 'layers.0', true],
    ['layers.10', 'layers.1', false],
    ['my layers.1', 'layers.1', false],
    ['layersx0', 'layers.0', false],
    ['layers.10', 'layers.??', true],
    ['layers.1', 'layers.??', false],
    ['layers.', 'layers.*', true],
    ['a+b (c) [d] {e} ^$|\\', 'a+b (c) [d] {e} ^$|\\', true],
    ['aab', 'a+b', false],
    ['x.y.z', '*.*.?', true],
  ])('range %s matches %s: %s', (name, range, matches) => expect(inRange(name, range)).toBe(matches));

  it('asks for the phase and the range at once', () => {
    expect(names(selectSpans(spans, { phase: 'backward', range: 'attention.*' }))).toEqual(['gemm', 'gemm']);
    expect(selectSpans(spans, { phase: 'backward', range: 'attention.softmax' })).toEqual([]);
  });
});

it('outermostOfEachName leaves out ranges inside another of their name', () => {
  const range = (name: string, index: number) => ({ name, step: 0, index });
  const ranges = [range('a', 0), range('b', 1), range('a', 2), range('b', 3), range('c', 4)];
  expect(outermostOfEachName(ranges).map(({ index }) => index)).toEqual([0, 1, 4]);
});
