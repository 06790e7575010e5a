import { diagnoseGloo } from '@roofline/collectives';
import { expect, it, vi } from 'vitest';
import { requireGloo } from '../../src/device/require-gloo.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { runMain } from '../fixtures/run-main.ts';

vi.mock('@roofline/collectives', async (original) => ({
  ...(await original<object>()),
  diagnoseGloo: vi.fn<typeof diagnoseGloo>(),
}));

const missing = {
  component: 'libgloo',
  status: 'missing',
  detail: 'its shim has not been built',
  remedy: 'Build it.',
} as const;

it('is content where Gloo is found', async () => {
  vi.mocked(diagnoseGloo).mockReturnValue({ ...missing, status: 'found' });
  await expect(requireGloo()).resolves.toBeUndefined();
});

it.each(['ddp --nproc 2', 'allreduce --backend gloo --size 1MB'])(
  '%s says before its sweep that Gloo is missing, and how to get it',
  async (line) => {
    vi.mocked(diagnoseGloo).mockReturnValue(missing);
    const words = [...line.split(' '), '--out', temporaryFolder()];
    expect(await runMain(words)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'roofline: libgloo is missing (its shim has not been built). Build it.\n',
    });
  },
);
