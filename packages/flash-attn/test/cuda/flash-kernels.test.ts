import { DeviceError } from '@roofline/tensor-core';
import { afterEach, describe, expect, it, vi } from 'vitest';

describe('the choice of flash kernels', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.resetModules();
  });

  const load = () => import('../../src/cuda/flash-kernels.ts');

  it('is the fastest unless something else is asked for', async () => {
    const { getFlashKernels, setFlashKernels } = await load();
    expect(getFlashKernels()).toBe('auto');
    setFlashKernels('mma');
    expect(getFlashKernels()).toBe('mma');
  });

  it('comes from the environment', async () => {
    vi.stubEnv('ROOFLINE_FLASH_KERNELS', 'mma');
    expect((await load()).getFlashKernels()).toBe('mma');
  });

  it('refuses kernels that do not exist', async () => {
    vi.stubEnv('ROOFLINE_FLASH_KERNELS', 'ampere');
    const { getFlashKernels, setFlashKernels } = await load();
    expect(() => getFlashKernels()).toThrow('ROOFLINE_FLASH_KERNELS: there are no kernels the text "ampere"');
    expect(() => setFlashKernels(undefined as never)).toThrow(/setFlashKernels: .*take auto, mma or simt/);
    expect(() => setFlashKernels(5 as never)).toThrow(expect.objectContaining({ name: DeviceError.name }));
  });
});
