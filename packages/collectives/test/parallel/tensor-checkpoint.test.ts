import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';

const folder = mkdtempSync(join(tmpdir(), 'tensor-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(!hasGloo)(`checkpoints of divided layers, by Gloo${glooNote}`, () => {
  it('are saved by some ranks, and read by others', async () => {
    const run = async (size: number, action: string, layout: string) => {
      for (const { code, stdout, stderr } of await runRanks('tensor-checkpoint', size, [
        ...['gloo', action, layout, folder],
      ]))
        expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
    };
    await run(2, 'save', 'tensor');
    await run(1, 'load', 'tensor');
    await run(4, 'load', 'both');
    await run(4, 'save', 'both');
    await run(2, 'load', 'tensor');
    await run(2, 'load', 'shard');
    await run(4, 'save', 'three');
    await run(1, 'load', 'tensor');
    await run(4, 'load', 'three');
  });
});
