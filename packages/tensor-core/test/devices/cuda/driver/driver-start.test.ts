// Is alone in a process: a stand-in for NVIDIA's driver stays loaded.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openCudaDevice } from '../../../../src/devices/cuda/open-device.ts';
import { diagnose } from '../../../../src/devices/diagnose.ts';
import { DeviceError } from '../../../../src/errors.ts';
import { hostCompilerVersion } from '../../../../src/testing/emulated-device.ts';

const driverModule = new URL('../../../../src/devices/cuda/driver/driver.ts', import.meta.url);

/** A libcuda of all functions that are asked of it, whose cuInit gives what the environment says. */
function sourceOfDriver(): string {
  const names = readFileSync(driverModule, 'utf8').matchAll(/'int (cu\w+)\(/g);
  const functions = Array.from(names, ([, name]) => name!).filter((name) => !/^cu(Init|GetError)/.test(name));
  return `
    #include <stdlib.h>
    int cuInit(unsigned flags) { return atoi(getenv("CU_INIT_RESULT")); }
    int cuGetErrorName(int result, const char **text) { *text = "CUDA_ERROR_NAME"; return 0; }
    int cuGetErrorString(int result, const char **text) { *text = "its text"; return 0; }
    ${functions.map((name) => `int ${name}() { return 3; }`).join('\n')}`;
}

describe.skipIf(!hostCompilerVersion())('a driver that is installed and does not start (needs gcc)', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'roofline-driver-'));
    writeFileSync(join(folder, 'driver.c'), sourceOfDriver());
    execFileSync('gcc', ['-shared', '-fPIC', '-w', 'driver.c', '-o', 'libcuda.so.1'], { cwd: folder });
    vi.stubEnv('ROOFLINE_CUDA_LIBRARIES', folder);
  });

  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

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
      path: join(folder, 'libcuda.so.1'),
      remedy: expect.stringMatching(remedy),
    });
    expect(() => openCudaDevice()).toThrow(DeviceError);
    expect(() => openCudaDevice()).toThrow(new RegExp(`^cuInit failed: .*${remedy.source}`));
  });
});
