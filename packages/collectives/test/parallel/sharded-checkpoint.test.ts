import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';

/** ROOFLINE_KILLS=20 for more, each as the rank comes to another part of its parameters. */
const kills = Number(process.env['ROOFLINE_KILLS'] ?? 1);

const folder = mkdtempSync(join(tmpdir(), 'sharded-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function run(action: string, size: number): Promise<void> {
  for (const { code, stdout, stderr } of await runRanks('sharded-checkpoint', size, ['gloo', action, folder]))
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
}

describe.skipIf(!hasGloo)(`sharded checkpoints${glooNote}`, () => {
  it('of 2 ranks are read by 2, 1, 3 and 4, with the state of the optimizer', async () => {
    await run('save', 2);
    for (const size of [2, 1, 3, 4]) await run('load', size);
  });

  it('stay when a rank is killed while it saves; the next call removes what it left', async () => {
    const versions = () =>
      readdirSync(join(folder, 'checkpoint')).filter((name) => name.startsWith('version-'));
    for (let kill = 0; kill < kills; kill++) {
      const results = await runRanks('sharded-checkpoint', 2, ['gloo', 'kill', folder, String(1 + kill)]);
      expect(results.map(({ signal, stdout }) => signal ?? stdout)).toEqual(['all right\n', 'SIGKILL']);
      expect(versions()).toHaveLength(2 + kill);
      await run('load', 2);
    }
    await run('save', 4);
    expect(versions()).toHaveLength(1);
    await run('load', 1);
  });
});
