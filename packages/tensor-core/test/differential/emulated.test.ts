// Is alone in a process: whether indices are checked is read once per process.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { runDifferential } from './differential.ts';
import { describeFailures } from './report.ts';
import { findTorchPython } from './torch/torch-server.ts';

// Each kernel takes the host's compiler a second, once a machine: of what is drawn, only what the first kernels can do is
// compared. More, of any op, by ROOFLINE_DIFFERENTIAL_DEVICE=emulated npm run test:differential.
const mostKernels = 80;
const python = findTorchPython();

describe.skipIf(!python || !hostCompilerVersion())('the kernels beside PyTorch', { timeout: 600_000 }, () => {
  // PyTorch checks indices.
  beforeEach(() => void vi.stubEnv('ROOFLINE_CHECK_INDICES', '1'));
  afterEach(() => void vi.unstubAllEnvs());

  it('give what PyTorch gives, on the emulated device', async () => {
    const device = openEmulatedDevice(undefined, undefined, undefined, undefined, mostKernels);
    const options = { device, python: python!, cases: 2000, seed: 20_000, dtypes: ['float32'] } as const;
    const { cases, failures } = await runDifferential(options);
    expect(describeFailures(failures)).toBe('');
    expect(cases).toBeGreaterThan(300);
  });
});
