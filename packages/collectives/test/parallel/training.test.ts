import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';

const folder = mkdtempSync(join(tmpdir(), 'training-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function run(action: string, size: number, script = 'training'): Promise<void> {
  for (const { code, stdout, stderr } of await runRanks(script, size, ['gloo', action, folder]))
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
}

describe.skipIf(!hasGloo)(`fit on several ranks${glooNote}`, () => {
  it('makes the steps of one process, replicated and sharded, and goes on from a file on any number of ranks', async () => {
    await run('begin', 2);
    for (const size of [2, 1]) await run('resume', size);
  });

  it("goes on with each rank's random numbers, and with new ones on more ranks", async () => {
    await run('begin', 2, 'drawing-training');
    for (const size of [2, 3, 1]) await run('resume', size, 'drawing-training');
  });
});
