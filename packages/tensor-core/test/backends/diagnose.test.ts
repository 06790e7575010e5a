import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { diagnose } from '../../src/backends/diagnose.ts';

it('names every component, whatever is found, and a remedy for what is not', () => {
  const lines = diagnose();
  const components = lines.map(({ component }) => component);
  for (const library of [
    'ONNX Runtime',
    'libcuda',
    'libnvrtc',
    'libcublasLt',
    'libnccl',
    'libcupti',
    'libnvidia-ml',
  ]) {
    expect(components).toContain(library);
  }
  expect(components.some((component) => component === 'GPU' || component === 'cuda:0')).toBe(true);
  for (const { status, remedy, detail } of lines) {
    expect(detail).not.toBe('');
    if (status === 'missing') expect(remedy).toBeTruthy();
  }
});

const hasDriver = diagnose().some(({ component, status }) => component === 'libcuda' && status === 'found');

it.skipIf(hasDriver)('of a library that exists but does not load it reports what the loader says', () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-diagnose-'));
  try {
    writeFileSync(join(folder, 'libcuda.so.1'), 'no library');
    vi.stubEnv('ROOFLINE_CUDA_LIBRARIES', folder);
    const driver = diagnose().find(({ component }) => component === 'libcuda')!;
    expect(driver).toMatchObject({ status: 'unusable', remedy: expect.stringContaining('driver') });
    expect(driver.detail).toContain(`${folder}/libcuda.so.1: Failed to load`);
    expect(driver.detail).not.toContain('was not found');
  } finally {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  }
});

it('does not find the CPU usable with an invalid number of threads', async () => {
  vi.stubEnv('ROOFLINE_CPU_THREADS', 'many');
  // In a process whose threads have not started.
  vi.resetModules();
  try {
    const { diagnose: diagnoseAnew } = await import('../../src/backends/diagnose.ts');
    const cpu = diagnoseAnew().find(({ component }) => component === 'ONNX Runtime')!;
    expect(cpu).toMatchObject({ status: 'unusable', path: expect.any(String) });
    expect(cpu.remedy).toContain(
      'ROOFLINE_CPU_THREADS: takes a whole number of threads from 1 to 1024, not the text "many"',
    );
  } finally {
    vi.unstubAllEnvs();
  }
});
