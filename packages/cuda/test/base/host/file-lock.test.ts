import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lockFile } from '../../../src/host.ts';

it('lets one holder in, until its file is closed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-file-lock-'));
  const path = join(folder, 'lock');
  // Each opening of a file is a holder of its own.
  const [first, second] = [0, 1].map(() => openSync(path, 'a+')) as [number, number];
  expect([lockFile(first), lockFile(second), lockFile(first)]).toEqual(['taken', 'held', 'taken']);
  closeSync(first);
  expect(lockFile(second, { waits: true })).toBe('taken');
  closeSync(second);
  expect(() => lockFile(second)).toThrow(/lockFile: file \d+ cannot be locked \(errno 9\)/);
  rmSync(folder, { recursive: true });
});
