import { describe, expect, it } from 'vitest';
import { liesFarApart, plotsOf, seriesOf } from '../../src/report/series.ts';
import { toyRecord, outOfMemoryRecord } from '../fixtures/records.ts';

const of = (...values: (number | null)[]) => [{ name: 'a', points: values.map((y, x) => ({ x, y })) }];

describe('series', () => {
  it('lie far apart where the most is more than so many times the least, gaps aside', () => {
    expect(
      [
        [1, 50],
        [1, 51],
        [2, null, 100],
        [2, null, 101],
      ].map((all) => liesFarApart(of(...all))),
    ).toEqual([...[false, true, false, true]]);
    expect(liesFarApart([...of(1, 2), ...of(9, 11)], 10)).toBe(true);
    expect(liesFarApart([...of(1, 2), ...of(9, 10)], 10)).toBe(false);
    expect(liesFarApart(of(null))).toBe(false);
  });

  it('are bars and dots of two categories at least, and lines of any', () => {
    const axes = {
      x: { label: 'x', scale: 'category' },
      y: { label: 'y', scale: 'linear' },
    } as const;
    const count = (marks: 'bar' | 'dot' | 'line', ...values: number[]) =>
      plotsOf({ id: 'a', title: 'A', ...axes, marks, series: of(...values) }).length;
    expect([count('bar', 1), count('dot', 1), count('line', 1), count('line')]).toEqual([0, 0, 1, 0]);
    expect([count('bar', 1, 2), count('dot', 1, 2)]).toEqual([1, 1]);
  });

  it('say why there is a gap, and leave out what has gaps alone', () => {
    const items = [toyRecord(), outOfMemoryRecord({ context: 32 })].map((record) => ({
      record,
      cell: record.parameters,
    }));
    const context = ({ cell }: (typeof items)[number]) => Number(cell['context']);
    const series = seriesOf({ x: context, y: { time: () => 5, none: () => null } }, items);
    expect(series).toEqual([
      {
        name: 'time',
        points: [
          { x: 16, y: 5 },
          { x: 32, y: null, note: 'out of memory' },
        ],
      },
    ]);
  });
});
