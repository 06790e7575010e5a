import { expect, it } from 'vitest';
import { renderCsv } from '../src/index.ts';
import { HOSTILE, measurements } from './fixtures.ts';

/** A reader written from RFC 4180, apart from the writer. */
function parseCsv(text: string): string[][] {
  const records: string[][] = [[]];
  let field = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    if (isQuoted && character === '"' && text[at + 1] === '"') {
      field += '"';
      at += 1;
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === ',' || text.startsWith('\r\n', at))) {
      records[records.length - 1]!.push(field);
      field = '';
      if (character === '\r') {
        at += 1;
        records.push([]);
      }
    } else field += character;
  }
  return records.slice(0, -1);
}

it('round-trips raw values at full precision, with units in the headings', () => {
  const table = measurements();
  table.rows[0]!.timeMs = 0.1 + 0.2;
  const [header, first, hostile, failed] = parseCsv(renderCsv(table));
  expect(header).toEqual([
    'Size',
    'Time (ms)',
    'Time std (ms)',
    'Peak memory (bytes)',
    'Ours / PyTorch',
    'Share of the roof (fraction)',
    'status',
    'error',
  ]);
  expect(first).toEqual(['small', '0.30000000000000004', '0.42', '3221225472', '0.58', '0.5', 'ok', '']);
  expect(Number(first![1])).toBe(0.1 + 0.2);
  expect(hostile![0]).toBe(HOSTILE);
  expect(hostile![3]).toBe('');
  expect(failed!.slice(-2)).toEqual(['out-of-memory', 'asked 12 GiB, "2 GiB" are free\nat step 3']);
});

it('has no status where no row has one', () => {
  const table = measurements();
  table.rows.length = 2;
  expect(renderCsv(table).split('\r\n')[0]).toMatch(/fraction\)$/);
});

it('leaves the measured cells of a failed row empty, never NaN', () => {
  expect(renderCsv(measurements())).toContain('\r\nslow,,,,,,timeout,no result in 600 s\r\n');
  expect(renderCsv(measurements())).not.toContain('NaN');
});
