import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { initProcessGroup } from '@roofline/collectives';
import { expect, it, vi } from 'vitest';
import { RankPeer } from '../../../src/benchmarks/ddp/ddp-peer.ts';
import type { DdpCell, DdpSettings } from '../../../src/benchmarks/ddp/parameters.ts';
import { runRank } from '../../../src/benchmarks/ddp/run-rank.ts';
import { toyCell } from '../../fixtures/records.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

vi.mock(import('@roofline/collectives'), async (importOriginal) => ({
  ...(await importOriginal()),
  initProcessGroup: vi.fn(),
}));

const { size, shape, context, batch } = toyCell;
const cell: DdpCell = {
  ...{ size, shape, context, batch, dtype: 'float32' },
  ...{
    optimizer: 'whole',
    worldSize: 2,
    mode: 'flat',
    execution: 'eager',
    attention: 'plain',
    recompute: 'none',
    logits: 'whole',
    memoryBudget: 'none',
  },
};
const settings: DdpSettings = {
  ...{ backend: 'gloo', bucketBytes: 1e6, warmup: 0, steps: 1, seed: 0 },
  peer: { name: 'torch', version: '2.0' },
};

/** How long our ranks wait for each other; undefined where they leave that to the group. */
async function timeoutOfOurs(given: DdpSettings): Promise<number | undefined> {
  vi.mocked(initProcessGroup).mockReset().mockRejectedValue(new Error('nobody joins'));
  await expect(runRank({ cell, settings: given, threads: 1, peerPort: 0 })).rejects.toThrow('nobody joins');
  return vi.mocked(initProcessGroup).mock.calls[0]![0].timeoutMs;
}

/** How long PyTorch's ranks are made to wait for each other. */
async function timeoutOfPeer(): Promise<number> {
  const folder = temporaryFolder();
  const [python, job] = [join(folder, 'python'), join(folder, 'job.json')];
  writeFileSync(python, `#!/bin/sh\nread -r job\nprintf '%s' "$job" > '${job}'\n`, { mode: 0o755 });
  vi.stubEnv('ROOFLINE_PYTHON', python);
  const peer = await RankPeer.start(cell, settings, { rank: 0, port: 1, threads: 1 });
  expect(await peer.finish()).toMatchObject({ status: 'failed' });
  vi.unstubAllEnvs();
  return 1000 * (JSON.parse(readFileSync(job, 'utf8')) as { timeoutSeconds: number }).timeoutSeconds;
}

it("ranks wait for each other longer than PyTorch's next to them, whose failure must not end them", async () => {
  expect(await timeoutOfOurs(settings)).toBeGreaterThan(await timeoutOfPeer());
  expect(await timeoutOfOurs({ ...settings, peer: null })).toBeUndefined();
});
