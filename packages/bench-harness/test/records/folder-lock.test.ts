import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../src/errors.ts';
import { lockFolder } from '../../src/records/folder-lock.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

describe('lockFolder', () => {
  it('keeps others out until it is given back', () => {
    const folder = temporaryFolder();
    const unlock = lockFolder(folder);
    expect(() => lockFolder(folder)).toThrow(UsageError);
    expect(() => lockFolder(folder)).toThrow(`in use by process ${process.pid} on ${hostname()}.`);
    unlock();
    lockFolder(folder)();
    expect(existsSync(join(folder, '.lock'))).toBe(false);
  });

  it.each(['', '{"pid":', '{"pid":1,"host":"elsewhere","startTicks":null}', 'process 1 on elsewhere, once'])(
    'takes over what a dead process, of an older version too, left: %s',
    (left) => {
      const folder = temporaryFolder();
      writeFileSync(join(folder, '.lock'), left);
      const unlock = lockFolder(folder);
      expect(readFileSync(join(folder, '.lock'), 'utf8')).toBe(`process ${process.pid} on ${hostname()}`);
      unlock();
    },
  );

  it('leaves alone what is not a lock of ours', () => {
    const folder = temporaryFolder();
    for (const text of ['held by another program', '{"owner":7}']) {
      writeFileSync(join(folder, '.lock'), text);
      expect(() => lockFolder(folder)).toThrow(/is no lock of Roofline's\. Remove it/);
      expect(readFileSync(join(folder, '.lock'), 'utf8')).toBe(text);
    }
  });

  it('says that a folder is in its place', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, '.lock'));
    expect(() => lockFolder(folder)).toThrow(UsageError);
    expect(() => lockFolder(folder)).toThrow(/Cannot make the lock .*\.lock \(EISDIR\)\. Remove it/);
  });

  it('is released only by its owner, should the folder have been replaced', () => {
    const folder = temporaryFolder();
    const unlock = lockFolder(folder);
    renameSync(join(folder, '.lock'), join(folder, 'moved'));
    const others = lockFolder(folder);
    unlock();
    expect(() => lockFolder(folder)).toThrow(/in use by process/);
    others();
  });

  it('never lets two in, though its owners are killed', async () => {
    const folder = temporaryFolder();
    const program = fileURLToPath(new URL('../fixtures/contend-for-lock.ts', import.meta.url));
    const contenders = Array.from({ length: 4 }, async () => {
      const words = ['--conditions=roofline-source', program, folder, '2000'];
      const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(child, 'exit');
      const [output] = (await once(child.stdout, 'data')) as [Buffer];
      expect(await ended).toEqual([null, 'SIGKILL']);
      return JSON.parse(String(output)) as { held: number; intrusions: number };
    });
    const outcomes = await Promise.all(contenders);
    expect(outcomes.reduce((sum, { held }) => sum + held, 0)).toBeGreaterThan(10);
    expect(outcomes.map(({ intrusions }) => intrusions)).toEqual([0, 0, 0, 0]);
    expect(readdirSync(folder)).toEqual(['.lock']);
    lockFolder(folder)();
  });
});
