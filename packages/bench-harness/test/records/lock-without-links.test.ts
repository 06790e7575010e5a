import { readdirSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { lockFolder } from '../../src/records/folder-lock.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

vi.mock('node:fs', async (importOriginal) => ({
  ...(await importOriginal<object>()),
  linkSync() {
    throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' });
  },
}));

it('locks folders of file systems that have no hard links', () => {
  const folder = temporaryFolder();
  const unlock = lockFolder(folder);
  expect(() => lockFolder(folder)).toThrow(/in use by process/);
  expect(readdirSync(folder)).toEqual(['.lock']);
  unlock();
  expect(readdirSync(folder)).toEqual([]);
});
