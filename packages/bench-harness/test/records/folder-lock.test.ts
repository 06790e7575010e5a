import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../src/errors.ts';
import { lockFolder } from '../../src/records/folder-lock.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

describe('lockFolder', () => {
  it('keeps others out until it is given back', () => {
    const folder = temporaryFolder();
    const unlock = lockFolder(folder);
    expect(() => lockFolder(folder)).toThrow(UsageError);
    expect(() => lockFolder(folder)).toThrow(`in use by process ${process.pid}`);
    unlock();
    lockFolder(folder)();
    expect(existsSync(join(folder, '.lock'))).toBe(false);
  });

  it('takes over the lock of a dead process', async () => {
    const folder = temporaryFolder();
    const child = spawn(process.execPath, ['--eval', '']);
    await once(child, 'exit');
    writeFileSync(
      join(folder, '.lock'),
      JSON.stringify({ pid: child.pid, host: hostname(), startTicks: '1' }),
    );
    expect(lockFolder(folder)).not.toThrow();
  });

  it.runIf(process.platform === 'linux')('takes over the lock of a process whose id was given anew', () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, '.lock'),
      JSON.stringify({ pid: process.pid, host: hostname(), startTicks: '1' }),
    );
    expect(lockFolder(folder)).not.toThrow();
  });

  it('takes over a torn lock, and leaves that of another host alone', () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, '.lock'), '{"pid":');
    lockFolder(folder)();
    const foreign = JSON.stringify({ pid: 1, host: 'elsewhere', startTicks: null });
    writeFileSync(join(folder, '.lock'), foreign);
    expect(() => lockFolder(folder)).toThrow('on elsewhere');
    expect(readFileSync(join(folder, '.lock'), 'utf8')).toBe(foreign);
  });
});
