import { describe, expect, it } from 'vitest';
import {
  busyUs,
  kernelSpans,
  phaseOf,
  selectSpans,
  totalUs,
} from '../../../src/benchmarks/profile/kernel-spans.ts';
import { packedProfile } from '../../../src/benchmarks/profile/packed-profile.ts';
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

  it("give nobody an op's work where it is spread over unlike kernels", () => {
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
  });

  it('tell phases and add up; overlapping kernels keep the device busy once', () => {
    const step = spans.filter((span) => span.step === 0);
    expect(step.map(phaseOf)).toEqual(['forward', 'forward', 'forward', 'backward', 'other']);
    expect(totalUs(step)).toBe(39);
    expect(busyUs(step)).toBe(39);
    const twin = { ...step[3]!, stream: 'cuda:0 stream 8', startUs: 50 };
    expect(busyUs([...step, twin])).toBe(39 + 10);
  });
});
