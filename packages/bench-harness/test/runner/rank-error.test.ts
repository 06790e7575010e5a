import { expect, it } from 'vitest';
import { rankError, reasonOfRank } from '../../src/runner/rank-error.ts';

it.each([
  [
    "an error of Node's",
    [
      'node:internal/modules/run_main:107',
      '    triggerUncaught(',
      '',
      "LibraryNotFoundError: gloo's shim was not found.",
      '    at f (x.js:1:2)',
      '',
      'Node.js v24.21.0',
    ],
    "LibraryNotFoundError: gloo's shim was not found.",
  ],
  [
    "one of Python's, after the rank",
    ['[rank 1] Traceback:', '[rank 1] torch.cuda.OutOfMemoryError: CUDA out of memory'],
    'torch.cuda.OutOfMemoryError: CUDA out of memory',
  ],
  ['words alone', ['first', 'last', ''], 'last'],
  ['nothing', [], 'it said nothing'],
])('finds the reason in %s', (_, lines, reason) => {
  expect(reasonOfRank(lines)).toBe(reason);
});

it("reports a rank's own error, without what Node.js wrote around it", () => {
  const failure = {
    rank: 1,
    exitCode: 1,
    signal: null,
    lastLines: ['/x.js:1', 'f()', '^', '', 'Error: none'],
  };
  expect(rankError({ ...failure, error: ['Error: none'] }).message).toBe(
    'Rank 1 ended with exit code 1: Error: none\nError: none',
  );
  expect(rankError({ ...failure, error: null }).message).toContain('\n/x.js:1\nf()\n');
});
