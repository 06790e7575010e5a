// Is alone in a process: it hides g++.
import { afterEach, expect, it, vi } from 'vitest';
import { DeviceError } from '../../src/base/errors.ts';
import { openEmulatedGpu } from '../../src/testing/emulated-gpu.ts';

afterEach(() => vi.unstubAllEnvs());

it('a kernel of an emulated GPU without g++ says what to install', () => {
  vi.stubEnv('PATH', '/nowhere');
  const source = new URL('../../examples/add.cu', import.meta.url);
  const load = () => openEmulatedGpu().kernel({ source, name: 'add', parameters: 'pppi' });
  expect(load).toThrow(DeviceError);
  expect(load).toThrow(/g\+\+, which cannot be started: install it/);
});
