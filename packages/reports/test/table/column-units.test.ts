import { expect, it } from 'vitest';
import {
  type Column,
  type Row,
  type Table,
  renderCsv,
  renderHtml,
  renderJson,
  renderLatex,
  renderMarkdown,
  renderTerminal,
  renderTypst,
} from '../../src/index.ts';
import { headingText, tableTexts } from '../../src/table/cell-text.ts';
import { withColumnUnits } from '../../src/table/column-units.ts';

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

const tableOf = (columns: Column[], rows: Row[]): Table => ({
  ...{ kind: 'table', id: 'units', title: 'Units' },
  columns,
  rows,
});

/** The heading of a column of these values, and its cells. */
function columnOf(kind: 'bytes' | 'duration', values: readonly Row['x'][], form: Partial<Column> = {}) {
  const table = withColumnUnits(
    tableOf(
      [{ key: 'x', label: 'X', kind, ...form }],
      values.map((x) => ({ x })),
    ),
  );
  return [headingText(table.columns[0]!), ...tableTexts(table).flat()];
}

it('writes a column in the unit of its median', () => {
  expect(columnOf('bytes', [3 * GIB, 512 * MIB, 2.5 * GIB])).toEqual(['X (GiB)', '3.00', '0.500', '2.50']);
  expect(columnOf('bytes', [512 * MIB, 3 * GIB])).toEqual(['X (GiB)', '0.500', '3.00']);
  expect(columnOf('duration', [0.02, 0.5, 1500])).toEqual(['X (µs)', '20.0', '500', '1,500,000']);
});

it('takes a smaller unit where the smallest cell would need an exponent', () => {
  expect(columnOf('bytes', [KIB, 100 * GIB])).toEqual(['X (MiB)', '0.000977', '102,400']);
  expect(columnOf('bytes', [100 * GIB, 8, 100 * GIB])).toEqual([
    'X (KiB)',
    '104,857,600',
    '0.00781',
    '104,857,600',
  ]);
  expect(columnOf('duration', [1e-6, 1000, 1000])).toEqual(['X (µs)', '0.00100', '1,000,000', '1,000,000']);
});

it('gives exponents to a column that no unit holds without', () => {
  expect(columnOf('duration', [1e-11, 1])).toEqual(['X (ns)', '1.00e-5', '1.00e+6']);
});

it('counts neither zeros nor what is missing', () => {
  expect(columnOf('bytes', [0, 0, 0, null, undefined, 5 * GIB])).toEqual([
    ...['X (GiB)', '0.00', '0.00', '0.00', '–', '–', '5.00'],
  ]);
  expect(columnOf('duration', [NaN, 2000, Infinity])).toEqual(['X (s)', 'NaN', '2.00', '∞']);
  expect(columnOf('bytes', [0, 0])).toEqual(['X (B)', '0', '0']);
  expect(columnOf('bytes', [])).toEqual(['X']);
  expect(columnOf('bytes', [null, NaN])).toEqual(['X', '–', 'NaN B']);
});

it('goes by the size of differences, whatever their sign', () => {
  expect(columnOf('bytes', [-3 * MIB, 2 * MIB, -KIB])).toEqual(['X (MiB)', '-3.00', '2.00', '-0.000977']);
  expect(columnOf('duration', [-0.0004, 0.0002, -0.0003])).toEqual(['X (ns)', '-400', '200', '-300']);
});

it('keeps bytes whole, and a unit that is given', () => {
  expect(columnOf('bytes', [1, 1000, 12])).toEqual(['X (B)', '1', '1000', '12']);
  expect(columnOf('bytes', [KIB, 100 * GIB], { unit: 'GiB' })).toEqual(['X (GiB)', '9.54e-7', '1.00e+2']);
});

it('does not count what a failed row has no measurement of', () => {
  const column: Column = { key: 'x', label: 'X', kind: 'bytes' };
  const table = tableOf(
    [column],
    [{ x: 2 * GIB }, { x: NaN, status: 'timeout' }, { status: 'out-of-memory' }],
  );
  expect(tableTexts(withColumnUnits(table)).flat()).toEqual(['2.00', 'timeout', 'OOM']);
});

it('gives the columns of a group one unit, and the others their own', () => {
  const columns: Column[] = [
    { key: 'before', label: 'Before', kind: 'duration', unitGroup: 'time' },
    { key: 'after', label: 'After', kind: 'duration', unitGroup: 'time' },
    { key: 'peak', label: 'Peak', kind: 'bytes', unitGroup: 'time' },
    { key: 'host', label: 'Host', kind: 'duration' },
  ];
  const table = tableOf(columns, [
    { before: 1.5, after: 0.4, peak: 3 * GIB, host: 0.02 },
    { before: 3, after: 2, peak: 4 * GIB, host: 0.03 },
  ]);
  const { columns: shown } = withColumnUnits(table);
  expect(shown.map(({ unit }) => unit)).toEqual(['ms', 'ms', 'GiB', 'µs']);
});

it('says the same in the terminal, Markdown, LaTeX, Typst and HTML, and leaves CSV and JSON raw', () => {
  const table = tableOf(
    [
      { key: 'name', label: 'Name', kind: 'text' },
      { key: 'bytes', label: 'Peak', kind: 'bytes' },
      { key: 'ms', label: 'Time', kind: 'duration' },
    ],
    [
      { name: 'a', bytes: KIB, ms: 0.0025 },
      { name: 'b', bytes: 100 * GIB, ms: 0.5 },
    ],
  );
  const untouched = structuredClone(table);
  expect(renderTerminal(table)).toMatch(
    /Peak \(MiB\) +Time \(µs\)\n.*\na +0\.000977 +2\.50\nb +102,400 +500\n/,
  );
  expect(renderMarkdown(table)).toMatch(
    /Peak \(MiB\) \| +Time \(µs\) \|\n.*\n\| a .*0\.000977 \| +2\.50 \|\n/,
  );
  expect(renderLatex(table)).toMatch(/Peak \(MiB\) & Time \(\$\\mu\$s\) .*\n.*\n +a & 0\.000977 & 2\.50 /);
  expect(renderTypst(table)).toContain('strong("Peak (MiB)"), strong("Time (µs)")');
  expect(renderTypst(table)).toContain('"a", "0.000977", "2.50"');
  const html = renderHtml({
    ...{ title: 'Units', createdAt: '2026-01-01T00:00:00.000Z', summary: [], environment: [] },
    sections: [{ id: 'section', title: 'Section', blocks: [table] }],
  });
  expect(html).toContain('Peak <span class="unit">MiB</span>');
  expect(html).toMatch(/>0\.000977<\/td>/);
  // What the page copies as Markdown and LaTeX has the headings of the cells it shows.
  expect(html).toContain('Peak (MiB) & Time ($\\\\mu$s)');
  expect(renderCsv(table)).toBe('Name,Peak (bytes),Time (ms)\r\na,1024,0.0025\r\nb,107374182400,0.5\r\n');
  expect(JSON.parse(renderJson(table))).toEqual(untouched);
  expect(table).toEqual(untouched);
});

it('chooses the unit from all rows, not from those that a page holds', () => {
  const rows = [
    ...Array.from({ length: 45 }, () => ({ x: 3 * KIB })),
    ...Array.from({ length: 50 }, () => ({ x: 2 * GIB })),
  ];
  expect(renderLatex(tableOf([{ key: 'x', label: 'X', kind: 'bytes' }], rows))).toContain('X (MiB)');
});
