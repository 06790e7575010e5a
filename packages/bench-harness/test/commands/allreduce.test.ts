import { diagnoseGloo } from '@roofline/collectives';
import { describe, expect, it } from 'vitest';
import { runCli } from '../fixtures/run-cli.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { torchPython } from '../fixtures/torch.ts';

const hasGloo = diagnoseGloo().status === 'found';
const quick = '--backend gloo --nproc 2 --rounds 1 --iterations 2';
const runIn = (folder: string, words: string) => runCli([...words.split(' '), '--out', folder]);

describe.skipIf(!hasGloo)(`roofline allreduce${hasGloo ? '' : ' (skipped: Gloo is not installed)'}`, () => {
  it('times a collective in place and not, and finds nothing wrong', async () => {
    const words = `allreduce ${quick} -b 1003 -e 1003 --json`;
    const { exitCode, stdout } = await runIn(temporaryFolder(), words);
    expect(exitCode).toBe(0);
    const [row] = JSON.parse(stdout).rows;
    expect(row).toMatchObject({ op: 'allreduce', 'in-place-wrong': 0, 'out-of-place-wrong': 0, count: 250 });
    expect(row['in-place-busbw']).toBeGreaterThan(0);
    expect(row['roofShare']).toBeGreaterThan(0);
  });

  it('makes a row of a cell that runs out of memory, and goes on', async () => {
    const words = `allreduce ${quick} --size 1000000GB,1KB --dtype bfloat16 --oom ok --json`;
    const { exitCode, stdout } = await runIn(temporaryFolder(), words);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout).rows.map(({ status }: { status: string }) => status)).toEqual([
      'out-of-memory',
      'ok',
    ]);
  });

  it.skipIf(torchPython === null)(
    `takes turns with torch.distributed${torchPython ? '' : ' (skipped: no PyTorch)'}`,
    async () => {
      const words = `allreduce ${quick} --op reducescatter,allreduce --size 100KB --peer torch --json`;
      const { stdout } = await runIn(temporaryFolder(), words);
      const { rows } = JSON.parse(stdout);
      const sides = rows.map(({ backend }: { backend: string }) => backend);
      expect(sides).toEqual(['gloo', 'PyTorch gloo', 'gloo', 'PyTorch gloo']);
      // PyTorch 1.13's Gloo has no reduce-scatter: its row says so or has a time, and ours is there.
      expect(rows[0]['out-of-place-us']).toBeGreaterThan(0);
      expect(rows[2].overPeer).toBeGreaterThan(0);
      expect(rows[3]['in-place-us']).toBeGreaterThan(0);
    },
  );
});
