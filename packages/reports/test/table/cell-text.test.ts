import { expect, it } from 'vitest';
import { failureNotes, rowTexts } from '../../src/table/cell-text.ts';
import type { Row, Table } from '../../src/index.ts';
import { measurements } from '../fixtures.ts';

const texts = (table: Table, row: Row) => rowTexts(table, row);

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
