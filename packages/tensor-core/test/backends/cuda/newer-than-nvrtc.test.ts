// Is alone in a process: stand-ins for NVIDIA's libraries stay loaded.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cudaAvailable, cudaDeviceCount } from '../../../src/backends/cuda/open-device.ts';
import { diagnose } from '../../../src/backends/diagnose.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { standInForNvrtc } from '../../../../cuda/test/nvrtc/stand-in-for-nvrtc.ts';
import { standInForDriver } from '../../../../cuda/test/driver/stand-in-for-driver.ts';

/** One GPU, of compute capability 15.0. */
const oneGpu = `
  int cuInit(unsigned flags) { return 0; }
  int cuDriverGetVersion(int *version) { *version = 16000; return 0; }
  int cuDeviceGetCount(int *count) { *count = 1; return 0; }
  int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
  int cuDeviceGetName(char *name, int length, int device) { strcpy(name, "A GPU to come"); return 0; }
  int cuDeviceGetUuid_v2(char *uuid, int device) { memset(uuid, 1, 16); return 0; }
  int cuDeviceGetPCIBusId(char *id, int length, int device) { strcpy(id, "0000:18:00.0"); return 0; }
  int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)1 << 38; return 0; }
  int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 15 : attribute == 76 ? 0 : 64;
    return 0;
  }`;

describe.skipIf(!hostCompilerVersion())('a GPU that the NVRTC found does not know (needs gcc)', () => {
  const ends: (() => void)[] = [];

  beforeAll(() => {
    ends.push(standInForNvrtc());
    const driver = standInForDriver(oneGpu);
    ends.push(() => driver.end());
  });

  afterAll(() => ends.forEach((end) => end()));

  it('runs no ops, and the diagnosis says why and what to install', () => {
    expect(cudaDeviceCount()).toBe(1);
    expect(cudaAvailable()).toBe(false);
    const entry = (name: string) => diagnose().find(({ component }) => component === name);
    expect(entry('cuda:0')).toMatchObject({
      status: 'found',
      detail: expect.stringContaining('A GPU to come, compute capability 15.0'),
    });
    expect(entry('libnvrtc')).toMatchObject({
      status: 'unusable',
      detail: expect.stringMatching(/^NVRTC 13\.7 .* does not compile for sm_150, only up to sm_90\.$/),
      remedy: expect.stringContaining('--upgrade nvidia-cuda-nvrtc'),
    });
  });
});
