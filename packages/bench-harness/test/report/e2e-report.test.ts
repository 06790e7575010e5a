import { renderHtml, renderMarkdown, renderTerminal } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import type { E2eResult } from '../../src/e2e/result.ts';
import { reportOfRecords } from '../../src/report/report-of-records.ts';
import { e2eBenchmark } from '../../src/e2e/benchmark.ts';
import { outOfMemoryRecord, toyRecord, toyResult } from '../fixtures/records.ts';

const peer: E2eResult['peer'] = {
  status: 'ok',
  torch: '2.11.0',
  python: '3.12.0',
  device: 'Toy GPU',
  deviceMs: [20, 20.1, 19.9, 20],
  wallMs: [20, 20.1, 19.9, 20],
  phasesMs: {},
  peakAllocatedBytes: 2 ** 21,
  peakReservedBytes: 2 ** 22,
};
const records = [
  toyRecord({}, { result: { ...toyResult(), peer } }),
  toyRecord({ mode: 'forward' }, { result: { ...toyResult(), deviceMs: [1, 2, 3, 4], loss: null } }),
  outOfMemoryRecord({ size: 'xl' }),
];

describe('e2e report', () => {
  const report = e2eBenchmark.toReport(records);

  it('computes floor, share of the roof, throughput and ratios', () => {
    const row = e2eBenchmark.toTable(records).rows[0]!;
    // 3 ms of products, and the optimizer's 0.2 GB at 100 GB/s: 2 ms.
    expect(row['floorMs']).toBeCloseTo(5, 10);
    expect(row['roofShare']).toBeCloseTo(0.5, 10);
    expect(row['medianMs']).toBeCloseTo(10, 10);
    expect(row['tokensPerSecond']).toBeCloseTo(3200, 8);
    expect(row['ratio']).toBeCloseTo(0.5, 10);
    expect(row['memoryRatio']).toBe(0.5);
  });

  it('sums up what the data say', () => {
    expect(report.summary).toEqual([
      '2 of 3 cells measured on Toy CPU; 1 ran out of memory.',
      expect.stringMatching(/^Closest to the roof: \*\*200 %\*\* \(small, forward/),
      expect.stringMatching(/^Farthest from it: \*\*50\.0 %\*\* \(small, train-step/),
      'Mode `train-step` takes **0.50×** the time of PyTorch 2.11.0 eager.',
      'Peak memory is between 0.50× and 0.50× that of PyTorch.',
    ]);
  });

  it('warns of a wide spread', () => {
    const notes = report.sections.flatMap(({ blocks }) => blocks).filter(({ kind }) => kind === 'note');
    expect(notes).toEqual([
      expect.objectContaining({
        tone: 'warning',
        text: expect.stringContaining('small forward at context 16'),
      }),
    ]);
  });

  it('shows an out-of-memory cell as a row and as a gap in the plot', () => {
    expect(renderTerminal(e2eBenchmark.toTable(records), { width: 200 })).toContain('xl');
    const plot = report.sections.flatMap(({ blocks }) => blocks).find((block) => block.kind === 'plot')!;
    const points = plot.series.find(({ name }) => name === 'train-step')!.points;
    expect(points[1]).toEqual({ x: 'xl', y: null, note: 'out-of-memory' });
  });

  it('renders, alone and joined with another device', () => {
    const environment = {
      ...records[0]!.environment,
      device: { ...records[0]!.environment.device, type: 'cuda' as const, name: 'Toy GPU' },
    };
    const both = reportOfRecords([...records, toyRecord({}, { environment })]);
    expect(both.sections.map(({ id }) => id)).toEqual(['1-times', '1-plots', '2-times', '2-plots']);
    expect(renderMarkdown(both)).toContain('Toy GPU');
    expect(renderHtml(report)).toContain('<html');
  });
});
