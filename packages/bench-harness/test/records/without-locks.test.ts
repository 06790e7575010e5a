import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { lockFolder } from '../../src/records/folder-lock.ts';

vi.mock(import('@roofline/cuda/host'), async (original) => ({
  ...(await original()),
  lockFile: () => 'unsupported' as const,
}));

it('a folder where files cannot be locked is measured into, with a warning', () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-no-locks-'));
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  lockFolder(folder)();
  lockFolder(folder)();
  expect(warn).toHaveBeenCalledWith(
    expect.stringMatching(/cannot be locked: nothing keeps another process/),
    {
      code: 'ROOFLINE_NO_LOCKS',
    },
  );
  warn.mockRestore();
  rmSync(folder, { recursive: true });
});
