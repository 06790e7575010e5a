import { stripVTControlCharacters } from 'node:util';
import { expect, it, vi } from 'vitest';
import { tell, withoutCodes } from '../../src/cli/output.ts';
import { printSentence } from '../../src/cli/print-sentence.ts';

/** What is written to a stream that says it is a terminal, or that it is none. */
function writtenTo(stream: NodeJS.WriteStream, isTTY: boolean, write: () => void): string {
  let written = '';
  const spy = vi.spyOn(stream, 'write').mockImplementation((text) => !!(written += String(text)));
  const before = { isTTY: stream.isTTY, columns: stream.columns };
  Object.assign(stream, { isTTY, columns: 40 });
  try {
    write();
  } finally {
    Object.assign(stream, before);
    spy.mockRestore();
  }
  return written;
}

it('an error takes the place of a status line, on a terminal alone', () => {
  const written = writtenTo(process.stderr, true, () => tell('It failed.'));
  expect(written).toMatch(/^\r\S+K/);
  expect(stripVTControlCharacters(written)).toBe('\rIt failed.\n');
  expect(writtenTo(process.stderr, false, () => tell('It failed.'))).toBe('It failed.\n');
});

it('a sentence wraps at the words of a terminal, and is one line in a log', () => {
  vi.stubEnv('COLUMNS', undefined);
  const text = 'Records are in results/demo; `roofline report results/demo` makes a page of them.';
  const print = () => printSentence(text);
  expect(writtenTo(process.stdout, true, print)).toBe(
    'Records are in results/demo;\n  `roofline report results/demo` makes a\n  page of them.\n',
  );
  expect(writtenTo(process.stdout, false, print)).toBe(`${text}\n`);
});

it('no mark that turns the direction of text reaches a terminal', () => {
  const marks = '\u061c\u200e\u200f\u202a\u202e\u2066\u2069';
  expect(withoutCodes(`a${marks}b`)).toBe(`a${'\ufffd'.repeat(marks.length)}b`);
});
