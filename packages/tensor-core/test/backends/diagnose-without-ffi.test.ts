import { expect, it, vi } from 'vitest';
import { diagnose } from '../../src/backends/diagnose.ts';

vi.mock('../../../cuda/src/base/host/ffi.ts', async (original) => ({
  ...(await original<object>()),
  ffi() {
    throw new Error('koffi has no binary for this platform');
  },
}));

it('reports every component where nothing native can be called', () => {
  const told = new Map(diagnose().map((entry) => [entry.component, entry]));
  expect(told.get('ONNX Runtime')!.status).toBe('found');
  for (const component of [
    'GPU',
    'libcuda',
    'libnvrtc',
    'libcublasLt',
    'libnccl',
    'libcupti',
    'libnvidia-ml',
  ]) {
    expect(told.get(component)).toMatchObject({
      status: 'unusable',
      detail: 'koffi has no binary for this platform',
    });
  }
});
