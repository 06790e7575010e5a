import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { runCellProcess } from '../../src/runner/cell-process.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** Runs `body` as the `measure` of a task that a user wrote, in JavaScript. */
function measureBy(body: string) {
  const path = join(temporaryFolder(), 'task.mjs');
  writeFileSync(path, `export default { name: 'own', measure(_, { progress }) { ${body} } };`);
  return runCellProcess({
    ...{ task: pathToFileURL(path).href, parameters: {}, settings: {}, deviceLabel: 'cpu' },
  });
}

it.each([
  ['', 'undefined'],
  ['return [42];', 'array'],
  ['return "42";', 'string'],
])('makes a failed cell of what is no result: %s', async (body, received) => {
  const { status, error } = { error: null, ...(await measureBy(body)) };
  expect(status).toBe('failed');
  expect(error!.message).toContain(`it.result: expected record, received ${received}`);
  expect(error!.message).toContain('measure returns an object');
});

it('keeps the result of a cell whose progress is not valid', async () => {
  expect(await measureBy('progress(Number.NaN, 1); progress(1, 2, 3); return { answer: 42 };')).toEqual({
    status: 'ok',
    result: { answer: 42 },
  });
});
