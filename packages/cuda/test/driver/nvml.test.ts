// Is alone in a process: stand-ins for NVIDIA's libraries stay loaded.
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';
import { standInForDriver } from './stand-in-for-driver.ts';
import { gpuOfNvml, otherOfNvml, standInForNvml } from './stand-in-for-nvml.ts';

const [notSupported, gpuIsLost] = [3, 15];

/** A fresh NVML binding on a stand-in of its own. */
async function open(...definitions: string[]) {
  vi.resetModules();
  const nvml = standInForNvml(definitions);
  onTestFinished(() => nvml.end());
  const { gpuClocks, haveNvlink } = await import('../../src/driver/nvml.ts');
  return { nvml, gpuClocks, haveNvlink, clocks: () => gpuClocks(gpuOfNvml) };
}

describe.skipIf(!hostCompilerVersion())('the clocks of a GPU (needs g++)', () => {
  it('are limited by power, heat or hardware; that a GPU is idle, or its clocks were chosen, limits none', async () => {
    const { nvml, clocks } = await open();
    const gpu = clocks();
    const limitsOf = (bits: number) => {
      nvml.set(bits, 0, 0);
      return gpu.read().limits;
    };
    expect(limitsOf(0)).toEqual([]);
    // Idle, clocks of applications, sync boost, clocks of the display.
    expect([0x1, 0x2, 0x10, 0x100, 0x113].map(limitsOf)).toEqual([[], [], [], [], []]);
    expect(limitsOf(0x4)).toEqual(['power']);
    expect([0x20, 0x40, 0x48, 0x28].map(limitsOf)).toEqual([
      ['thermal'],
      ['thermal'],
      ['thermal'],
      ['thermal'],
    ]);
    expect([0x8, 0x80, 0x88].map(limitsOf)).toEqual([['hardware'], ['hardware'], ['hardware']]);
    expect(limitsOf(0x4 | 0x40 | 0x80)).toEqual(['power', 'thermal', 'hardware']);
  });

  it('have been held down for as long as the driver has counted', async () => {
    const { nvml, clocks } = await open();
    nvml.set(0, 2 ** 33 + 5, 7);
    expect(clocks().read()).toEqual({ limits: [], powerNs: 2 ** 33 + 5, thermalNs: 7 });
  });

  it('are unknown where the GPU supports one question or none, or has gone', async () => {
    const { nvml, clocks } = await open();
    const gpu = clocks();
    nvml.set(0x4, 1, 2);
    nvml.answer(0, notSupported);
    expect(gpu.read()).toEqual({ limits: ['power'], powerNs: null, thermalNs: null });
    nvml.answer(notSupported, 0);
    expect(gpu.read()).toEqual({ limits: null, powerNs: 1, thermalNs: 2 });
    nvml.answer(gpuIsLost, gpuIsLost);
    expect(gpu.read()).toEqual({ limits: null, powerNs: null, thermalNs: null });
  });

  it('are read of an NVML that lacks functions or has them under older names', async () => {
    const { nvml, clocks } = await open('WITHOUT_VIOLATIONS', 'WITH_OLD_NAME');
    nvml.set(0x20, 1, 2);
    expect(clocks().read()).toEqual({ limits: ['thermal'], powerNs: null, thermalNs: null });
  });

  it('are refused of a GPU that NVML does not know, and where it does not start', async () => {
    const { nvml, gpuClocks, clocks } = await open();
    nvml.answerStart(9);
    expect(clocks).toThrow(/libnvidia-ml\.so\.1 does not start \(nvmlReturn 9\): does `nvidia-smi` run\?/);
    nvml.answerStart(0);
    expect(() => gpuClocks('0000:99:00.0')).toThrow(
      'NVML gives no access to the GPU 0000:99:00.0 (nvmlReturn 6): does `nvidia-smi` list it?',
    );
    expect(clocks().read().limits).toEqual([]);
  });

  it('are found by the diagnosis, which says so where nothing is known of them', async () => {
    const { nvml } = await open();
    const driver = standInForDriver(`
      int cuInit(unsigned flags) { return 0; }
      int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
      int cuDeviceGetCount(int *count) { *count = 1; return 0; }
      int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
      int cuDeviceGetName(char *name, int length, int device) { strcpy(name, "A GPU"); return 0; }
      int cuDeviceGetUuid_v2(char *uuid, int device) { memset(uuid, 1, 16); return 0; }
      int cuDeviceGetPCIBusId(char *id, int length, int device) { strcpy(id, "${gpuOfNvml}"); return 0; }
      int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)1 << 38; return 0; }
      int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = 9; return 0; }`);
    onTestFinished(() => driver.end());
    const { diagnose } = await import('../../src/diagnose.ts');
    const entry = () => diagnose().find(({ component }) => component === 'libnvidia-ml');
    expect(entry()).toMatchObject({ status: 'found', version: '13.580.95' });
    nvml.answer(notSupported, notSupported);
    expect(entry()).toMatchObject({
      status: 'unusable',
      detail: 'It does not say what holds the clocks of cuda:0 down.',
      remedy: expect.stringContaining('Records do not say it either'),
    });
    nvml.answer(notSupported, 0);
    expect(entry()).toMatchObject({ status: 'found' });
  });
});

describe.skipIf(!hostCompilerVersion())('NVLink between GPUs (needs g++)', () => {
  const [reads, nvlink, atomics, notConnected] = [0, 2, 3, 4];

  it('is what NVML says of that alone; a GPU needs none to itself', async () => {
    const { nvml, haveNvlink } = await open();
    expect(haveNvlink(gpuOfNvml, otherOfNvml)).toBe(true);
    for (const capability of [reads, atomics]) nvml.setP2p(capability, notConnected);
    expect(haveNvlink(gpuOfNvml, otherOfNvml)).toBe(true);
    nvml.setP2p(nvlink, notConnected);
    expect(haveNvlink(gpuOfNvml, otherOfNvml)).toBe(false);
    expect(haveNvlink(gpuOfNvml, gpuOfNvml)).toBe(true);
  });

  it('is not there where NVML does not answer, and an error for a GPU that it does not know', async () => {
    const { haveNvlink } = await open('WITHOUT_P2P');
    expect(haveNvlink(gpuOfNvml, otherOfNvml)).toBe(false);
    expect(() => haveNvlink(gpuOfNvml, '0000:99:00.0')).toThrow(/no access to the GPU 0000:99:00.0/);
  });
});
