import { expect, it } from 'vitest';
import { reasonOfRank } from '../../src/runner/rank-error.ts';

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
    "one of Python's, behind the rank",
    ['[rank 1] Traceback:', '[rank 1] torch.cuda.OutOfMemoryError: CUDA out of memory'],
    'torch.cuda.OutOfMemoryError: CUDA out of memory',
  ],
  ['words alone', ['first', 'last', ''], 'last'],
  ['nothing', [], 'it said nothing'],
])('finds the reason in %s', (_, lines, reason) => {
  expect(reasonOfRank(lines)).toBe(reason);
});
