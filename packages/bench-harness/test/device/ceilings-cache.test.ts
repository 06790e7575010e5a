import { utimesSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { cacheCeilings, ceilingsCachePath, readCachedCeilings } from '../../src/device/ceilings-cache.ts';
import type { Environment } from '../../src/records/environment.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const ceilings = { matmulFlopsPerSecond: { float32: 1e12 }, copyBytesPerSecond: 1e11 };

function withCache(): string {
  const folder = temporaryFolder();
  vi.stubEnv('XDG_CACHE_HOME', folder);
  vi.stubEnv('ROOFLINE_CACHE_DIR', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  return folder;
}

const gpu: Environment = {
  ...toyEnvironment,
  device: { label: 'cuda:0', type: 'cuda', name: 'Toy GPU', properties: { driverCuda: '13.0' } },
};

describe('the ceilings that are kept', () => {
  it.runIf(process.platform === 'linux')('are none below /proc, where mkdir never succeeds', () => {
    withCache();
    vi.stubEnv('XDG_CACHE_HOME', '/proc/no/such');
    cacheCeilings(toyEnvironment, ceilings);
    expect(readCachedCeilings(toyEnvironment)).toBeNull();
  });

  it('are found again, in the folder for caches', () => {
    const folder = withCache();
    expect(readCachedCeilings(toyEnvironment)).toBeNull();
    cacheCeilings(toyEnvironment, ceilings);
    expect(readCachedCeilings(toyEnvironment)).toEqual(ceilings);
    expect(ceilingsCachePath()).toBe(`${folder}/roofline/ceilings.json`);
    vi.stubEnv('XDG_CACHE_HOME', 'relative');
    expect(ceilingsCachePath()).toMatch(/^\/.*\/\.cache\/roofline\/ceilings\.json$/);
    vi.stubEnv('ROOFLINE_CACHE_DIR', '/beside/kernels');
    expect(ceilingsCachePath()).toBe('/beside/kernels/ceilings.json');
  });

  it('are those of a machine that was busy, whose runs differed widely, for an hour', () => {
    withCache();
    const makeOld = () => utimesSync(ceilingsCachePath(), new Date(0), new Date(Date.now() - 3_700_000));
    const measured = (matmul: number, copy: number) => ({
      ...ceilings,
      spread: { matmulFlopsPerSecond: { float32: matmul }, copyBytesPerSecond: copy },
    });
    for (const busy of [measured(0.83, 0.1), measured(0.1, 0.31)]) {
      cacheCeilings(toyEnvironment, busy);
      expect(readCachedCeilings(toyEnvironment)).toEqual(busy);
      makeOld();
      expect(readCachedCeilings(toyEnvironment)).toBeNull();
    }
    cacheCeilings(toyEnvironment, measured(0.05, 0.15));
    makeOld();
    expect(readCachedCeilings(toyEnvironment)).toEqual(measured(0.05, 0.15));
  });

  it('are none for a user without a home folder, who can still measure', () => {
    withCache();
    vi.stubEnv('XDG_CACHE_HOME', undefined);
    const homedir = vi.spyOn(os, 'homedir').mockImplementation(() => {
      throw Object.assign(new Error('uv_os_homedir returned ENOENT'), { code: 'ERR_SYSTEM_ERROR' });
    });
    syncBuiltinESMExports();
    onTestFinished(() => {
      homedir.mockRestore();
      syncBuiltinESMExports();
    });
    cacheCeilings(toyEnvironment, ceilings);
    expect(readCachedCeilings(toyEnvironment)).toBeNull();
  });

  it.each<[string, Environment]>([
    ['the device', { ...gpu, device: { ...gpu.device, name: 'Other GPU' } }],
    ['the driver', { ...gpu, device: { ...gpu.device, properties: { driverCuda: '13.1' } } }],
    ['a variable', { ...gpu, variables: { ROOFLINE_FLOAT32_MATMUL: 'sgemm' } }],
    ['the version', { ...gpu, packages: { '@roofline/tensor-core': '0.1.0' } }],
  ])('are others where %s is another', (_what, other) => {
    withCache();
    cacheCeilings(gpu, ceilings);
    expect(readCachedCeilings(other)).toBeNull();
    cacheCeilings(other, { ...ceilings, copyBytesPerSecond: 2 });
    expect(readCachedCeilings(gpu)).toEqual(ceilings);
  });

  it('are the same on any GPU of a name, and none where the file is torn', () => {
    withCache();
    cacheCeilings(gpu, ceilings);
    expect(readCachedCeilings({ ...gpu, device: { ...gpu.device, label: 'cuda:1' } })).toEqual(ceilings);
    writeFileSync(ceilingsCachePath(), '{');
    expect(readCachedCeilings(gpu)).toBeNull();
  });
});
