import { describe, expect, it } from 'vitest';
import type { Table } from '../../src/index.ts';
import { shorten } from '../../src/text/shorten.ts';
import { alignments, escaper, headings, writeRow, writeTable } from '../../src/text/text-form.ts';

const table: Table = {
  kind: 'table',
  id: 't',
  title: 'T',
  columns: [
    { key: 'name', label: 'Name & place', kind: 'text' },
    { key: 'ms', label: 'Time', kind: 'duration', unit: 'ms' },
    { key: 'mark', label: 'Mark', kind: 'text', align: 'center' },
  ],
  rows: [
    { name: 'a & b', ms: 1.5, mark: 'x' },
    { name: 'a name of many words', ms: 20, mark: 'y' },
  ],
};
const escape = escaper({ '&': 'and' });

describe('escaper', () => {
  it('takes the longest key that fits, in whatever order they are given', () => {
    for (const escapes of [
      { a: '1', ab: '2', abc: '3' },
      { abc: '3', ab: '2', a: '1' },
    ]) {
      expect(escaper(escapes)('abc ab a abab cab')).toBe('3 2 1 22 c2');
    }
    expect(escaper({ '\r': 'R', '\n': 'N', '\r\n': 'RN' })('\r\n\n\r')).toBe('RNNR');
  });

  it('takes keys as they are written, whatever they mean in a pattern', () => {
    for (const key of ['.', '*', '+', '?', '^', '$', '{', '}', '(', ')', '|', '[', ']', '\\', '.*', '[a]']) {
      expect(escaper({ [key]: '!' })(`a${key}b${key}`)).toBe('a!b!');
    }
    // No key means what it would in a pattern of its own, and no replacement is replaced again.
    expect(escaper({ '.': ',' })('ab')).toBe('ab');
    expect(escaper({ a: 'b', b: 'a' })('ab')).toBe('ba');
  });
});

describe('shorten', () => {
  it.each([
    ['abcdefghij', 10, 'abcdefghij'],
    ['abcdefghijk', 10, 'abcdefg…jk'],
    ['abcdefghijklmnop', 9, 'abcdef…op'],
    ['abcdefghijklmnop', 5, 'abcd…'],
    ['abcdefghijklmnop', 4, 'abc…'],
    ['', 3, ''],
  ])('%j in %i characters is %j', (text, longest, shortened) => {
    expect(shorten(text, longest)).toBe(shortened);
    expect(shortened.length).toBeLessThanOrEqual(longest);
  });

  it('leaves all as it is without a limit', () => expect(shorten('x'.repeat(999))).toHaveLength(999));
});

it('writes headings escaped and with their units, and one alignment a column', () => {
  expect(headings(table, escape)).toEqual(['Name and place', 'Time (ms)', 'Mark']);
  expect(alignments(table, { left: 'l', right: 'r', center: 'c' })).toEqual(['l', 'r', 'c']);
});

it('writes a row, and a table of rows: shortened, then escaped', () => {
  const form = { begin: '<', rowStart: '(', cellSeparator: ';', rowEnd: ')', end: '>' };
  expect(writeRow(form, ['a', 'b', 'c'])).toBe('(a;b;c)');
  expect(writeTable(form, escape, table)).toBe('<(a and b;1.50;x)(a name of many words;20.0;y)>');
  // The five characters of `a & b` fit, though what is written for them is longer.
  expect(writeTable({ ...form, longestCell: 5 }, escape, table)).toBe('<(a and b;1.50;x)(a na…;20.0;y)>');
});
