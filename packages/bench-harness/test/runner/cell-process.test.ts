import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { cellProgram } from '../../src/paths.ts';
import { runCellProcess } from '../../src/runner/cell-process.ts';
import { livingOf } from '../fixtures/process-groups.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** A job whose `measure`, in JavaScript, is `body`. */
function jobOf(body: string) {
  const path = join(temporaryFolder(), 'task.mjs');
  writeFileSync(path, `export default { name: 'own', measure(_, { progress }) { ${body} } };`);
  return { task: pathToFileURL(path).href, parameters: {}, settings: {}, deviceLabel: 'cpu' };
}

/** Runs `body` as the `measure` of a task that a user wrote. */
const measureBy = (body: string) => runCellProcess(jobOf(body));

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

const startSleep = `process.getBuiltinModule('child_process').spawn('sleep', ['60'], { stdio: 'inherit' });`;

it.runIf(process.platform === 'linux').each([
  ['waits', 0, `${startSleep} return new Promise((resolve) => setTimeout(resolve, 60_000));`],
  ['reports', 3, `${startSleep} return new Promise(() => setInterval(() => progress(1, 2), 5));`],
  ['fails', 3, `${startSleep} return new Promise((_, reject) => setTimeout(reject, 500, new Error('no')));`],
])('takes all that it started along when its runner is gone while it %s', async (_, descriptor, body) => {
  // Without a lifeline, which may come later than what it sees of its own pipes.
  const cell = spawn(process.execPath, [...cellProgram.nodeFlags, cellProgram.path], {
    stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    detached: true,
  });
  onTestFinished(() => void cell.kill('SIGKILL'));
  cell.stdin!.write(`${JSON.stringify(jobOf(body))}\n`);
  await expect.poll(() => livingOf([cell.pid!]), { timeout: 60_000 }).toContain('sleep');
  cell.stdio[descriptor]!.destroy();
  await expect.poll(() => livingOf([cell.pid!]), { timeout: 30_000, interval: 20 }).toEqual([]);
});
