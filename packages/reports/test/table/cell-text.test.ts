import { expect, it } from 'vitest';
import { failureNotes, tableTexts } from '../../src/table/cell-text.ts';
import type { Row, Table } from '../../src/index.ts';
import { measurements } from '../fixtures.ts';

const texts = (table: Table, row: Row) => tableTexts({ ...table, rows: [row] })[0]!;

it('writes the marker of a failed row into every measured cell, NaN included', () => {
  const table = measurements();
  expect(texts(table, table.rows[2]!)).toEqual(['huge', 'OOM', 'OOM', 'OOM', 'OOM']);
  expect(texts(table, table.rows[3]!).slice(1)).toEqual(['timeout', 'timeout', 'timeout', 'timeout']);
});

it('keeps what a failed row did measure', () => {
  const row: Row = { size: 'x', timeMs: 2, status: 'interrupted' };
  expect(texts(measurements(), row)).toEqual(['x', '2.00', 'interrupted', 'interrupted', 'interrupted']);
});

it('says so even where a failed row has no empty cell', () => {
  const table: Table = { ...measurements(), columns: [{ key: 'size', label: 'Size', kind: 'text' }] };
  expect(texts(table, { size: 'x', status: 'failed' })).toEqual(['x (failed)']);
  expect(texts(table, { size: null, status: 'failed' })).toEqual(['failed']);
});

it('shows a status column, a missing value and a diverged one', () => {
  const columns: Table['columns'] = [
    { key: 'loss', label: 'Loss', kind: 'number' },
    { key: 'status', label: 'Status', kind: 'status' },
  ];
  const table: Table = { ...measurements(), columns };
  expect(texts(table, { loss: NaN })).toEqual(['NaN', 'ok']);
  expect(texts(table, { status: 'ok' })).toEqual(['–', 'ok']);
  expect(texts(table, { loss: 2, status: 'out-of-memory' })).toEqual(['2', 'OOM']);
});

it('counts failures that differ only in their numbers together', () => {
  const row = (bytes: number) => ({ status: 'out-of-memory' as const, error: `asked for ${bytes} bytes` });
  expect(failureNotes({ ...measurements(), rows: [row(7), row(8), row(7)] })).toEqual([
    '3 rows OOM, such as: asked for 7 bytes',
  ]);
});

it('counts failures by their reason', () => {
  const table = measurements();
  table.rows.push({ size: 'slower', status: 'timeout', error: 'no result in 600 s' });
  expect(failureNotes(table)).toEqual([
    '1 row OOM: asked 12 GiB, "2 GiB" are free',
    '2 rows timeout: no result in 600 s',
  ]);
});

it('writes the numbers of a column in one notation: with exponents where one needs it', () => {
  const columnOf = (values: readonly number[], form: Partial<Table['columns'][number]> = {}) =>
    tableTexts({
      ...measurements(),
      columns: [{ key: 'x', label: 'X', kind: 'number', ...form }],
      rows: values.map((x) => ({ x, deviation: x / 10 })),
    }).map(([text]) => text);
  expect(columnOf([0.034, 1.2, 0])).toEqual(['0.0340', '1.20', '0']);
  expect(columnOf([0.034, 1.2e-5, 0, -7, NaN])).toEqual(['3.40e-2', '1.20e-5', '0', '-7.00e+0', 'NaN']);
  expect(columnOf([0.0084, 6.5e-7], { digits: 2 })).toEqual(['8.4e-3', '6.5e-7']);
  expect(columnOf([3, 2e15])).toEqual(['3.00e+0', '2.00e+15']);
  expect(columnOf([20, 0.00002], { kind: 'duration', unit: 's' })).toEqual(['2.00e-2', '2.00e-8']);
  expect(columnOf([2, 0.00002], { uncertaintyKey: 'deviation' })).toEqual([
    '2.00e+0 ± 2.00e-1',
    '2.00e-5 ± 2.00e-6',
  ]);
  // Each cell has a unit of its own, in which it is short.
  expect(columnOf([20, 0.00002], { kind: 'duration' })).toEqual(['20.0 ms', '20.0 ns']);
  expect(columnOf([0.5, 0.00002], { kind: 'percent' })).toEqual(['50.0 %', '<0.01 %']);
});
