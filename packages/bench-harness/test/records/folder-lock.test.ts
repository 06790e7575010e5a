import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
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

  it.runIf(process.platform === 'linux')('takes over the lock of a process whose id was reused', () => {
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

  it('leaves alone what is not a lock of ours', () => {
    const folder = temporaryFolder();
    for (const text of ['held by another program', '{"pid":-1,"host":"vm"}', '{"owner":7}']) {
      writeFileSync(join(folder, '.lock'), text);
      expect(() => lockFolder(folder)).toThrow(/is no lock of Roofline's\. Remove it/);
      expect(readFileSync(join(folder, '.lock'), 'utf8')).toBe(text);
    }
  });

  it('says that a folder is in its place', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, '.lock'));
    expect(() => lockFolder(folder)).toThrow(UsageError);
    expect(() => lockFolder(folder)).toThrow(/Cannot read the lock .*\.lock \(EISDIR\)\. Remove it/);
  });

  it('is released only by its owner, should the folder have been replaced', () => {
    const folder = temporaryFolder();
    const unlock = lockFolder(folder);
    const other = JSON.stringify({ pid: 1, host: 'elsewhere', startTicks: null });
    writeFileSync(join(folder, '.lock'), other);
    unlock();
    expect(readFileSync(join(folder, '.lock'), 'utf8')).toBe(other);
  });

  it.runIf(process.platform === 'linux')(
    'takes over the lock of a process that was never waited for',
    async () => {
      const folder = temporaryFolder();
      // The shell is replaced by a program that never waits for the child it had, which must outlive the shell.
      const parent = spawn('sh', ['-c', 'sleep 2 & echo $!; exec sleep 120'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void parent.kill('SIGKILL'));
      const [output] = (await once(parent.stdout, 'data')) as [Buffer];
      const pid = Number(output);
      const stat = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
      await expect.poll(() => stat()[0]).toBe('Z');
      const holder = { pid, host: hostname(), startTicks: stat()[19] };
      writeFileSync(join(folder, '.lock'), JSON.stringify(holder));
      expect(lockFolder(folder)).not.toThrow();
    },
  );

  it('never lets two in, even if half of its owners die', async () => {
    const folder = temporaryFolder();
    const program = fileURLToPath(new URL('../fixtures/contend-for-lock.ts', import.meta.url));
    const contenders = Array.from({ length: 4 }, async () => {
      const words = ['--conditions=roofline-source', program, folder, '2000'];
      const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
      const [output] = (await once(child.stdout, 'data')) as [Buffer];
      return JSON.parse(String(output)) as { held: number; intrusions: number };
    });
    const outcomes = await Promise.all(contenders);
    expect(outcomes.reduce((sum, { held }) => sum + held, 0)).toBeGreaterThan(10);
    expect(outcomes.map(({ intrusions }) => intrusions)).toEqual([0, 0, 0, 0]);
    expect(readdirSync(folder).filter((name) => name !== '.lock')).toEqual([]);
  });
});
