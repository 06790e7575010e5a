import { expect, it } from 'vitest';
import { diagnose } from '../../src/devices/diagnose.ts';

it('names every component, whatever is found, and a remedy for what is not', () => {
  const lines = diagnose();
  const components = lines.map(({ component }) => component);
  for (const library of ['ONNX Runtime', 'libcuda', 'libnvrtc', 'libcublasLt', 'libnccl', 'libcupti']) {
    expect(components).toContain(library);
  }
  expect(components.some((component) => component === 'GPU' || component === 'cuda:0')).toBe(true);
  for (const { status, remedy, detail } of lines) {
    expect(detail).not.toBe('');
    if (status === 'missing') expect(remedy).toBeTruthy();
  }
});
