import { diagnoseGloo } from '@roofline/collectives';
import { cudaDeviceCount } from '@roofline/tensor-core';
import { expect, it, vi } from 'vitest';
import { chooseBackend, requireBackend } from '../../src/device/require-backend.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { runMain } from '../fixtures/run-main.ts';

vi.mock('@roofline/collectives', async (original) => ({
  ...(await original<object>()),
  diagnoseGloo: vi.fn<typeof diagnoseGloo>(),
}));

vi.mock('@roofline/tensor-core', async (original) => ({
  ...(await original<object>()),
  cudaDeviceCount: vi.fn<typeof cudaDeviceCount>(() => 0),
}));

const missing = {
  component: 'libgloo',
  status: 'missing',
  detail: 'its shim has not been built',
  remedy: 'Build it.',
} as const;

it('is content where Gloo is found', async () => {
  vi.mocked(diagnoseGloo).mockReturnValue({ ...missing, status: 'found' });
  await expect(requireBackend('gloo')).resolves.toBeUndefined();
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

it.each(['ddp --backend nccl', 'allreduce --backend gloo,nccl --size 1MB'])(
  '%s says without a GPU that gloo is for the CPU',
  async (line) => {
    vi.mocked(diagnoseGloo).mockReturnValue({ ...missing, status: 'found' });
    vi.mocked(cudaDeviceCount).mockReturnValue(0);
    const { exitCode, stderr } = await runMain([...line.split(' '), '--out', temporaryFolder()]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('CUDA finds none here (`roofline doctor` says why); `--backend gloo` connects');
    expect(stderr).not.toContain("device 'cpu'");
  },
);

it.each([
  [0, 2, 'gloo'],
  [1, 1, 'gloo'],
  [2, 2, 'nccl'],
  [2, 4, 'gloo'],
  [4, null, 'nccl'],
] as const)(
  'of %d GPUs and %s ranks takes GPUs where each rank has its own',
  async (gpus, ranks, backend) => {
    vi.mocked(cudaDeviceCount).mockReturnValue(gpus);
    expect(await chooseBackend({ given: undefined, device: 'auto', ranks })).toBe(backend);
  },
);

it('takes what is asked for, by its name or by its device, and nothing that contradicts itself', async () => {
  const asked = (given: 'gloo' | 'nccl' | undefined, device: string) =>
    chooseBackend({ given, device, ranks: 2 });
  expect(await Promise.all([asked('nccl', 'auto'), asked(undefined, 'cuda'), asked('gloo', 'cpu')])).toEqual([
    'nccl',
    'nccl',
    'gloo',
  ]);
  await expect(asked('nccl', 'cpu')).rejects.toThrow('--backend nccl does not connect ranks of --device cpu');
  await expect(asked(undefined, 'cuda:1')).rejects.toThrow('take --device cuda');
});
