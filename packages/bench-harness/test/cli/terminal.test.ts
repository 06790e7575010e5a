import { WriteStream } from 'node:tty';
import { afterEach, expect, it, vi } from 'vitest';
import { canRewrite, hasColors, widthOf } from '../../src/cli/terminal.ts';

afterEach(() => vi.unstubAllEnvs());

it('takes a terminal that reports no columns for one of 80, and a pipe for what COLUMNS says', () => {
  vi.stubEnv('COLUMNS', undefined);
  expect(widthOf({ isTTY: true, columns: 0 })).toBe(80);
  expect(widthOf({ isTTY: true })).toBe(80);
  expect(widthOf({ isTTY: true, columns: 120 })).toBe(120);
  expect(widthOf({})).toBe(160);
  vi.stubEnv('COLUMNS', '100');
  expect(widthOf({})).toBe(100);
  expect(widthOf({ isTTY: true, columns: 120 })).toBe(120);
});

it.each([
  ['xterm', undefined, true, true],
  ['xterm', '1', false, true],
  ['dumb', undefined, false, false],
])('with TERM %s and NO_COLOR %s colours are %s and rewriting %s', (term, noColor, colors, rewrites) => {
  for (const name of ['FORCE_COLOR', 'CI', 'TMUX', 'COLORTERM']) vi.stubEnv(name, undefined);
  vi.stubEnv('NODE_DISABLE_COLORS', undefined);
  vi.stubEnv('TERM', term);
  vi.stubEnv('NO_COLOR', noColor);
  const terminal = { isTTY: true, hasColors: () => WriteStream.prototype.hasColors() };
  expect(hasColors(terminal)).toBe(colors);
  expect(canRewrite(terminal)).toBe(rewrites);
  expect(hasColors({ hasColors: () => true })).toBe(false);
  expect(canRewrite({})).toBe(false);
});

it.each(['-5', '0', '0.5', 'wide', '1e999', ''])('COLUMNS of %j is ignored', (columns) => {
  vi.stubEnv('COLUMNS', columns);
  expect(widthOf({})).toBe(160);
});
