import { expect, it } from 'vitest';
import { plotTable } from '../../src/index.ts';
import { throughput } from '../fixtures.ts';

it('has a row for each x, and a column for each series', () => {
  const { columns, rows } = plotTable(throughput());
  expect(columns.map(({ label }) => label)).toEqual(['Context', 'ours', 'theirs']);
  expect(rows).toEqual([
    { x: 1024, series0: 300, series0Error: 10, series1: 250 },
    { x: 8192, series0: 450, series0Error: 5, series1: 'OOM' },
  ]);
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
    { x: 1, series0: 5, series0Error: 1, series1: 6 },
    { x: 1, series0: 7 },
    { x: 2, series0: 9 },
  ]);
});
