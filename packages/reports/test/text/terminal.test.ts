import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { renderTerminal } from '../../src/index.ts';
import type { Table } from '../../src/index.ts';
import { measurements } from '../fixtures.ts';

function plainTable(): Table {
  const table = measurements();
  table.rows.splice(1, 1);
  return table;
}

describe('renderTerminal', () => {
  it('right-aligns numbers and names failures', () => {
    const lines = renderTerminal(plainTable(), { width: 120 }).split('\n');
    expect(lines).toEqual([
      'Steps & more',
      'Batch 4, 100% measured',
      'Size    Time (ms)  Peak memory  Ours / PyTorch  Share of the roof',
      '─────  ──────────  ───────────  ──────────────  ─────────────────',
      'small  12.3 ± 0.4     3.00 GiB           0.58×             50.0 %',
      'huge          OOM          OOM             OOM                OOM',
      'slow      timeout      timeout         timeout            timeout',
      '1 row OOM: asked 12 GiB, "2 GiB" are free',
      '1 row timeout: no result in 600 s',
      '',
    ]);
  });

  it.each([60, 50, 40, 30])('keeps the table within %d columns and loses no number', (width) => {
    const text = renderTerminal(plainTable(), { width });
    const table = text.split('\n').filter((line) => !/^\d row/.test(line));
    expect(Math.max(...table.map((line) => line.length))).toBeLessThanOrEqual(width);
    for (const value of ['12.3 ± 0.4', '3.00 GiB', '0.58×', '50.0 %']) expect(text).toContain(value);
  });

  it('breaks long text but no number', () => {
    const text = renderTerminal(measurements(), { width: 80 });
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(text).toContain('1500 ± 13');
    expect(text).not.toContain('…');
  });

  it('repeats the leading text columns where it parts the table', () => {
    const headings = renderTerminal(plainTable(), { width: 30 })
      .split('\n')
      .filter((line) => line.startsWith('small'));
    expect(headings.length).toBeGreaterThan(1);
  });

  it('colours only on request, with the same text', () => {
    const plain = renderTerminal(plainTable(), { width: 100 });
    const colored = renderTerminal(plainTable(), { width: 100, color: true });
    expect(plain).toBe(stripVTControlCharacters(plain));
    expect(colored).not.toBe(plain);
    expect(stripVTControlCharacters(colored)).toBe(plain);
  });

  it('refuses a table without columns by name', () => {
    expect(() => renderTerminal({ ...measurements(), columns: [] })).toThrow(/'steps' has no columns/);
  });
});
