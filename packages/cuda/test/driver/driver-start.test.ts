// Is alone in a process: a stand-in for NVIDIA's driver stays loaded.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { diagnose } from '../../src/diagnose.ts';
import { openGpu } from '../../src/open-gpu.ts';
import { DeviceError } from '../../src/base/errors.ts';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';
import { standInForDriver } from './stand-in-for-driver.ts';

describe.skipIf(!hostCompilerVersion())('a driver that is installed and does not start (needs gcc)', () => {
  let driver: ReturnType<typeof standInForDriver>;

  beforeAll(() => {
    driver = standInForDriver('int cuInit(unsigned flags) { return atoi(getenv("CU_INIT_RESULT")); }');
  });

  afterAll(() => driver.end());

  it.each([
    [100, /sees no GPU: on a cluster take a job that has one/],
    [802, /nvidia-fabricmanager/],
    [803, /reboot/],
    [1, /nvidia-smi/],
  ])('says what helps: result %i', (result, remedy) => {
    vi.stubEnv('CU_INIT_RESULT', String(result));
    const problem = 'cuInit failed: CUDA_ERROR_NAME (its text).';
    expect(diagnose().find(({ component }) => component === 'libcuda')).toMatchObject({
      status: 'unusable',
      detail: problem,
      path: join(driver.folder, 'libcuda.so.1'),
      remedy: expect.stringMatching(remedy),
    });
    expect(() => openGpu()).toThrow(DeviceError);
    expect(() => openGpu()).toThrow(new RegExp(`^cuInit failed: .*${remedy.source}`));
  });
});
