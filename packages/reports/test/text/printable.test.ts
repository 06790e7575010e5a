import { DOMParser } from 'linkedom';
import { describe, expect, it } from 'vitest';
import {
  renderCsv,
  renderHtml,
  renderJson,
  renderLatex,
  renderMarkdown,
  renderSvg,
  renderTerminal,
  renderTypst,
  type Table,
} from '../../src/index.ts';
import { printable } from '../../src/text/printable.ts';
import { sampleReport, throughput } from '../fixtures.ts';

const reportOf = (block: Table) =>
  sampleReport({
    title: block.title,
    subtitle: block.title,
    sections: [{ id: 'only', title: block.title, text: [block.title], blocks: [block] }],
  });

/** Clears the screen, rings, names the window, sends 8-bit codes, turns the line around, breaks an encoder. */
const CODES = 'a\u001b[2J\u0007\u001b]0;title\u0007\u009b31m\u0000\u007f\u202eb\ud800c\ufffe\u061c\u200fd';
// Besides control codes of each kind: tabs and line breaks are layout.
const CONTROL = /(?![\t\n\r])[\p{Cc}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/u;

const table: Table = {
  kind: 'table',
  id: 'codes',
  title: CODES,
  caption: CODES,
  columns: [
    { key: 'name', label: CODES, kind: 'text' },
    { key: 'timeMs', label: 'Time', kind: 'duration', unit: 'ms' },
  ],
  rows: [
    { name: CODES, timeMs: 1 },
    { name: 'line\rover\tstruck', timeMs: null, status: 'failed', error: CODES },
  ],
};

describe('control codes in records', () => {
  it.each([
    ['a terminal', renderTerminal],
    ['Markdown', renderMarkdown],
    ['LaTeX', renderLatex],
    ['Typst', renderTypst],
    ['CSV', renderCsv],
    ['JSON', renderJson],
    ['a Markdown document', (codes: Table) => renderMarkdown(reportOf(codes))],
    ['a page', (codes: Table) => renderHtml(reportOf(codes))],
  ] as const)('do not reach %s', (_where, render) => {
    expect(render(table)).not.toMatch(CONTROL);
  });

  it('do not break an SVG', () => {
    const plot = throughput({
      title: CODES,
      series: [
        {
          name: CODES,
          points: [
            { x: 1, y: 1 },
            { x: 2, y: 2 },
          ],
        },
      ],
    });
    const svg = renderSvg(plot);
    expect(svg).not.toMatch(CONTROL);
    expect(new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement!.tagName).toBe('svg');
  });

  it('are kept as they are in the values of JSON', () => {
    expect(JSON.parse(renderJson(table))).toEqual(JSON.parse(JSON.stringify(table)));
  });

  it('leave all other text alone', () => {
    const text = 'Größe · 10 µs, 図, 😀, e\u0301\tand\r\nmore';
    expect(printable(text)).toBe(text);
  });

  it('leave no carriage return in a terminal, which would write over the line', () => {
    expect(renderTerminal(table)).not.toMatch(/[\r\t]/);
  });
});

it('a huge message is cut in terminals and in notes', () => {
  const huge: Table = {
    ...table,
    rows: [{ name: 'x'.repeat(1e6), status: 'failed', error: 'y'.repeat(1e6) }],
  };
  expect(renderTerminal(huge).length).toBeLessThan(10_000);
  expect(
    renderMarkdown(reportOf({ ...huge, rows: [{ name: 'x', status: 'failed', error: 'y'.repeat(1e6) }] }))
      .length,
  ).toBeLessThan(10_000);
});

it.each(['=1+1', '+1', '-1+1', '@SUM(A1)', '\t=1', '\r=1', '=cmd|"/C calc"!A0'])(
  'the text %j is no formula in CSV',
  (text) => {
    const csv = renderCsv({
      ...table,
      columns: [{ key: 'name', label: text, kind: 'text' }],
      rows: [{ name: text }],
    });
    for (const line of csv.split('\r\n').slice(0, 2)) expect(line).toMatch(/^"?'/);
  },
);

it('negative numbers are numbers in CSV', () => {
  expect(renderCsv({ ...table, rows: [{ name: 'a', timeMs: -1.5 }] })).toMatch(/\r\na,-1\.5\r\n$/);
});
