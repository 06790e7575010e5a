import { describe, expect, it } from 'vitest';
import { csvField, rawFields, rawValue } from '../../src/text/csv.ts';
import { renderCsv, type Table } from '../../src/index.ts';
import { HOSTILE, measurements } from '../fixtures.ts';

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

it('has no heading twice, and fractions under no percent sign', () => {
  const column = (key: string, label: string, kind: 'number' | 'percent' = 'number') => ({
    key,
    label,
    kind,
  });
  const columns = [
    column('a', 'Ratio'),
    column('b', 'Ratio'),
    column('c', 'Ratio'),
    column('d', 'Time (%)', 'percent'),
  ];
  const [header, row] = parseCsv(
    renderCsv({ ...measurements(), columns, rows: [{ a: 1, b: 2, c: 3, d: 0.5 }] }),
  );
  expect(header).toEqual(['Ratio', 'Ratio 2', 'Ratio 3', 'Time (fraction)']);
  expect(row).toEqual(['1', '2', '3', '0.5']);
});

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

describe('a field', () => {
  it.each([
    ['plain text', 'plain text'],
    ['a,b', '"a,b"'],
    ['a;b', 'a;b'],
    ['say "x"', '"say ""x"""'],
    ['"', '""""'],
    ['two\nlines', '"two\nlines"'],
    ['two\rlines', '"two\rlines"'],
    ['', ''],
    [null, ''],
    [undefined, ''],
    [0, '0'],
    [-0.1, '-0.1'],
    [1e21, '1e+21'],
    [NaN, 'NaN'],
    [-Infinity, '-Infinity'],
  ])('of %j is %s', (value, text) => expect(csvField(value)).toBe(text));
});

describe('raw fields', () => {
  const table: Table = {
    kind: 'table',
    id: 't',
    title: 'T',
    columns: [
      { key: 'name', label: 'Name', kind: 'text' },
      { key: 'rate', label: 'Rate', kind: 'number', unit: 'GB/s', uncertaintyKey: 'rateStd' },
      { key: 'ratio', label: 'Ratio', kind: 'ratio', uncertaintyKey: 'ratioStd' },
      { key: 'share', label: 'Share', kind: 'percent', uncertaintyKey: 'spread' },
      { key: 'spread', label: 'Spread', kind: 'percent' },
      { key: 'ratio', label: 'The same again', kind: 'ratio' },
    ],
    rows: [{ name: 'a', rate: 1, rateStd: 0.5 }],
  };
  const headingsOf = (changes: Partial<Table>) =>
    rawFields({ ...table, ...changes }).map(({ heading }) => heading);
  const columns = [
    'Name',
    'Rate (GB/s)',
    'Rate std (GB/s)',
    'Ratio',
    'Ratio std',
    'Share (fraction)',
    'Spread (fraction)',
  ];

  it('are the columns, each once, with deviations that are not columns themselves', () => {
    expect(headingsOf({})).toEqual(columns);
    expect(rawFields(table)[2]).toEqual({ key: 'rateStd', heading: 'Rate std (GB/s)' });
  });

  it('are the status and the error too, where a row has one', () => {
    expect(headingsOf({ rows: [{}, { status: 'ok' }] })).toEqual([...columns, 'status']);
    expect(headingsOf({ rows: [{ error: 'x' }, {}] })).toEqual([...columns, 'error']);
    expect(headingsOf({ rows: [{ status: 'failed', error: 'x' }] })).toEqual([...columns, 'status', 'error']);
    const status = { key: 'status', label: 'Outcome', kind: 'status' as const };
    expect(headingsOf({ columns: [status], rows: [{ status: 'ok' }] })).toEqual(['Outcome']);
  });

  it('hold values as they are, null where there are none, and ok for a row without a status', () => {
    const value = (key: string, row: Table['rows'][number]) => rawValue(row, { key, heading: '' });
    expect(value('rate', { rate: 0 })).toBe(0);
    expect(value('rate', { rate: NaN })).toBeNaN();
    expect(value('rate', {})).toBeNull();
    expect(value('rate', { rate: NaN, status: 'failed' })).toBeNull();
    expect(value('rate', { rate: 3, status: 'failed' })).toBe(3);
    expect(value('status', {})).toBe('ok');
    expect(value('status', { status: 'timeout' })).toBe('timeout');
  });

  it('end every line as RFC 4180 has it', () => {
    expect(renderCsv({ ...table, columns: table.columns.slice(0, 2) })).toBe(
      'Name,Rate (GB/s),Rate std (GB/s)\r\na,1,0.5\r\n',
    );
  });
});
