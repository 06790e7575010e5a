import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { prepareDevice } from '../../src/device/prepare-device.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

it('measures copies alone for work that only moves bytes, and nothing where no roof is asked for', async () => {
  const folder = temporaryFolder();
  vi.stubEnv('ROOFLINE_CACHE_DIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect((await prepareDevice('cpu', null))!.ceilings).toBeNull();
  const told: string[] = [];
  const onStatus = (text: string, done?: number, total?: number) => {
    if (total !== undefined) told.push(`${text} ${done}/${total}`);
  };
  const { ceilings } = (await prepareDevice('cpu', [], { onStatus }))!;
  expect(ceilings!.matmulFlopsPerSecond).toEqual({});
  expect(ceilings!.copyBytesPerSecond).toBeGreaterThan(0);
  expect(told.map((text) => text.split(' ').at(-1))).toEqual(['1/2', '2/2']);
  const kept = Object.values(JSON.parse(readFileSync(join(folder, 'ceilings.json'), 'utf8')) as object);
  expect(kept).toEqual([ceilings]);
});
