import { afterEach, expect, it } from 'vitest';
import { findTorchPython } from '../../src/peer/find-python.ts';

const named = process.env['ROOFLINE_PYTHON'];
afterEach(() => {
  if (named === undefined) delete process.env['ROOFLINE_PYTHON'];
  else process.env['ROOFLINE_PYTHON'] = named;
});

it.each([
  ['/nowhere/python', 'spawn /nowhere/python ENOENT'],
  ['false', 'exit code 1'],
])('says in one line what came of ROOFLINE_PYTHON=%s', async (python, reason) => {
  process.env['ROOFLINE_PYTHON'] = python;
  const message = await findTorchPython().then(
    () => expect.unreachable(),
    (error: Error) => error.message,
  );
  expect(message).toContain(reason);
  expect(message).not.toContain('\n');
});
