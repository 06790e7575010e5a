import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parameter } from '../../src/parameters/parameter.ts';
import { ratioCharts, ratiosOf, type ComparedCell } from '../../src/report/ratio-chart.ts';

const parameters = { size: parameter(z.string()), context: parameter(z.number()) };
const comparison = {
  ...{ id: 'a', title: 'A', ours: 'Ours', theirs: 'Theirs', parameters },
  named: ['size', 'context'],
};
const cell = (context: number, ours: number | null, theirs: number | null, size = 'xl'): ComparedCell => ({
  ...{ cell: { size, context }, ours, theirs },
});

describe('a chart of ratios', () => {
  it('has its rows by numbers from the least on, and by words as they come', () => {
    const cases = [
      cell(1024, 1, 2, 'xl'),
      cell(256, 1, 2, 'small'),
      cell(128, 1, 2, 'xl'),
      cell(9, 1, 2, 'xl'),
    ];
    const [chart] = ratioCharts(comparison, cases);
    expect(chart!.rows.map(({ names }) => names)).toEqual([
      ...[
        ['xl', '9'],
        ['xl', '128'],
        ['xl', '1024'],
      ],
      ['small', '256'],
    ]);
  });

  it('is none of a single ratio, whatever else has one side alone', () => {
    const single = [cell(1, 1, 2), cell(2, 1, null), cell(3, null, 2), cell(4, 1, 0), cell(5, NaN, 1)];
    expect(ratiosOf(single)).toEqual([0.5]);
    expect(ratioCharts(comparison, single)).toEqual([]);
    expect(ratioCharts(comparison, [...single, cell(6, 3, 2)])).toHaveLength(1);
  });

  it('has no value of what is 0 or diverged', () => {
    const cases = [cell(1, 1, 2), cell(2, 1, 2), cell(3, 0, 2), cell(4, 1, Infinity), cell(5, -1, 1)];
    const [chart] = ratioCharts(comparison, cases);
    expect(chart!.rows.slice(2).map(({ ours, theirs }) => [ours, theirs])).toEqual([
      ...[
        [null, 2],
        [1, null],
        [null, 1],
      ],
    ]);
  });
});
