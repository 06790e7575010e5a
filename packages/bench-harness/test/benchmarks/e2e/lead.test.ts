import type { Plot, RatioPlot } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { e2eBenchmark } from '../../../src/benchmarks/e2e/benchmark.ts';
import type { E2eCell } from '../../../src/benchmarks/e2e/parameters.ts';
import { leadSteps } from '../../../src/benchmarks/e2e/report/lead.ts';
import { toyCell, toyRecord, toyResult } from '../../fixtures/records.ts';

/** A step of which each phase takes its part of `ms`. */
const step = (cell: Partial<E2eCell>, ms: number) => toyRecord(cell, { result: toyResult(ms / 10) });
const plotOf = (records: readonly ReturnType<typeof toyRecord>[], id: string) =>
  e2eBenchmark
    .toReport(records)
    .sections.flatMap(({ blocks }) => blocks)
    .find((block): block is Plot => block.kind === 'plot' && block.id === id)!;

describe('what a report of steps begins with', () => {
  it('compares compiled steps with the eager ones that ran in turn with them', () => {
    const compiled = (context: number) =>
      toyRecord(
        { context, execution: 'compiled' },
        { result: { ...toyResult(0.5), eagerInTurn: toyResult(2) } },
      );
    const eager = [16, 32].map((context) => toyRecord({ context }));
    const { title, chart } = e2eBenchmark.toReport([...eager, compiled(16), compiled(32)]);
    expect(title).toBe("A compiled float32 training step takes 0.25× of an eager one's time");
    expect((chart as RatioPlot).rows[0]).toMatchObject({ ours: 5, theirs: expect.closeTo(20) });
  });

  it('takes all steps where the best way has one of them alone', () => {
    const steps = [
      { cell: toyCell },
      { cell: { ...toyCell, context: 32 } },
      { cell: { ...toyCell, dtype: 'bfloat16' as const } },
    ];
    expect(leadSteps(steps)).toEqual(steps);
    const more = [...steps, { cell: { ...steps[2]!.cell, context: 32 } }];
    expect(leadSteps(more)).toEqual(more.slice(2));
  });
});

describe('plots of steps', () => {
  it('show phases as shares where steps are more than ten times apart', () => {
    const unitOf = (ms: number) =>
      plotOf([step({}, 10), step({ size: 'xl' }, ms)], 'phases-of-a-train-step').y.unit;
    expect([unitOf(100), unitOf(101)]).toEqual(['ms', '%']);
  });

  it('have error bars that begin at the least time where the deviation is larger', () => {
    const outlier = (size: string) =>
      toyRecord({ size }, { result: { ...toyResult(), deviceMs: [10, 10, 10, 40] } });
    const [point] = plotOf([outlier('small'), outlier('xl')], 'time-by-size').series[0]!.points;
    expect(point).toMatchObject({ y: 17.5, low: 10, high: 32.5 });
  });
});
