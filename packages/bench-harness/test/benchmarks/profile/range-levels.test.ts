import { device, profile } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { createWorkload } from '../../../src/benchmarks/e2e/workload.ts';
import { kernelSpans, type KernelSpan } from '../../../src/benchmarks/profile/kernel-spans.ts';
import { type PackedProfile, packProfile } from '../../../src/benchmarks/profile/packed-profile.ts';
import { levelSums } from '../../../src/benchmarks/profile/report/range-levels.ts';
import { rangeSummary } from '../../../src/benchmarks/profile/report/summaries.ts';
import { toyProfileResult } from '../../fixtures/profiles.ts';
import { toyCell } from '../../fixtures/records.ts';

const [model] = kernelSpans(toyProfileResult.steps);
const spanIn = (...names: string[]): KernelSpan => ({
  ...model!,
  ranges: names.map((name, index) => ({ name, step: 0, index })),
});

describe('instances by range', () => {
  it('add up at every level, including what is outside of it', () => {
    const spans = [
      spanIn('forward', 'layers.0', 'attn', 'q_proj'),
      spanIn('forward', 'layers.0', 'ffn'),
      spanIn('forward', 'layers.1'),
      spanIn('forward', 'loss'),
      spanIn('backward', 'layers.1', 'attn'),
      spanIn(),
    ];
    expect(levelSums(spans)).toEqual([
      { level: 'phases', ranges: 2, inside: 5, outside: 1, total: 6, addsUp: true },
      { level: 'layers', ranges: 2, inside: 4, outside: 2, total: 6, addsUp: true },
      { level: 'parts of a layer', ranges: 2, inside: 3, outside: 3, total: 6, addsUp: true },
    ]);
  });

  it('do not add up where a kernel is in two ranges of a level', () => {
    const [phases, layers] = levelSums([
      spanIn('forward', 'layers.0'),
      spanIn('backward', 'forward', 'layers.0', 'layers.1'),
      spanIn('backward', 'layers.1'),
    ]);
    expect(phases).toMatchObject({ inside: 4, total: 3, addsUp: false });
    expect(layers).toMatchObject({ inside: 4, total: 3, addsUp: false });
  });

  it('list only the levels that occur', () => {
    expect(levelSums([spanIn('optimizer')]).map(({ level }) => level)).toEqual(['phases']);
    expect(levelSums([])).toEqual([]);
  });
});

describe('a real profile of a training step on the CPU', async () => {
  const layers = 3;
  const cell = { ...toyCell, shape: { ...toyCell.shape, layers } };
  const workload = createWorkload(cell, device('cpu'), 0);
  const steps: PackedProfile[] = [];
  for (let step = 0; step < 2; step++) {
    steps.push(packProfile(await profile(() => workload.step((_, work) => work()))));
  }
  const spans = kernelSpans(steps);
  const rows = rangeSummary(spans, { pid: 1, tid: 1 });
  const instances = (range: string) =>
    rows.filter((row) => row.range === range).reduce((sum, row) => sum + row.instances, 0);

  it('adds up at every level', () => {
    const sums = levelSums(spans);
    expect(sums.map(({ level, ranges, addsUp }) => ({ level, ranges, addsUp }))).toEqual([
      { level: 'phases', ranges: 3, addsUp: true },
      { level: 'layers', ranges: layers, addsUp: true },
      { level: 'parts of a layer', ranges: 4, addsUp: true },
    ]);
    expect(sums[0]!.total).toBe(steps.reduce((sum, { kernels }) => sum + kernels.name.length, 0));
    // On the CPU every kernel is of an op, and all ops of a step are of a phase.
    expect(sums[0]!.outside).toBe(0);
  });

  it('has equal layers, and parts that make up attention', () => {
    expect(instances('layers.0')).toBeGreaterThan(0);
    expect(instances('layers.1')).toBe(instances('layers.0'));
    expect(instances('forward') + instances('backward') + instances('optimizer')).toBe(spans.length);
    const inside = ['attention.scores', 'attention.softmax', 'attention.values'];
    for (const name of inside) expect(instances(name)).toBeGreaterThan(0);
    expect(inside.reduce((sum, name) => sum + instances(name), 0)).toBeLessThan(instances('attn'));
  });
});
