import { expect, it } from 'vitest';
import { plotTable, renderCsv } from '../../src/index.ts';
import { throughput } from '../fixtures.ts';

it('has a row for each x, and a column for each series', () => {
  const { columns, rows } = plotTable(throughput());
  expect(columns.map(({ label }) => label)).toEqual(['Context', 'ours', 'ours, low', 'ours, high', 'theirs']);
  expect(rows).toEqual([
    { x: 1024, series0: 300, series0Low: 290, series0High: 310, series1: 250 },
    { x: 8192, series0: 450, series0Low: 445, series0High: 455, series1: 'OOM' },
  ]);
});

it('reports both ends of an error bar, which need not lie a standard deviation from its middle', () => {
  const points = [{ x: 1024, y: 5, low: 4.5, high: 9 }];
  const csv = renderCsv(plotTable(throughput({ series: [{ name: 'ours', points }] })));
  expect(csv).toBe(
    'Context (tokens),ours (TFLOP/s),"ours, low (TFLOP/s)","ours, high (TFLOP/s)"\r\n1024,5,4.5,9\r\n',
  );
});

it('keeps every point of a series that has several at one x', () => {
  const points = [
    { x: 1, y: 5, low: 4, high: 6 },
    { x: 1, y: 7 },
    { x: 2, y: 9 },
  ];
  const theirs = { name: 'theirs', points: [{ x: 1, y: 6 }] };
  const { rows } = plotTable(throughput({ marks: 'dot', series: [{ name: 'ours', points }, theirs] }));
  expect(rows).toEqual([
    { x: 1, series0: 5, series0Low: 4, series0High: 6, series1: 6 },
    { x: 1, series0: 7 },
    { x: 2, series0: 9 },
  ]);
});
