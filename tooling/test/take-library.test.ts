import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { expect, it } from 'vitest';

it('a library is there as a whole, or not at all, while it is taken: other processes may load it', async () => {
  const folder = resolve('libraries/onnxruntime-linux-x64');
  const path = join(folder, 'libonnxruntime.so.1');
  const take = spawn(process.execPath, ['../take-library.mjs'], { cwd: folder, stdio: 'inherit' });
  const seen = new Set<number>();
  while (take.exitCode === null && take.signalCode === null) {
    const there = statSync(path, { throwIfNoEntry: false });
    if (there) seen.add(there.size);
    await turnOfTheEventLoop();
  }
  expect(take.exitCode).toBe(0);
  const { size } = statSync(path);
  expect([...seen.add(size)]).toEqual([size]);
});
