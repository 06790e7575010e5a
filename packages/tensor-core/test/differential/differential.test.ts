// Is alone in a process: whether indices are checked is read once per process.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type DType, device } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { runDifferential } from './differential.ts';
import { describeFailures } from './report.ts';
import { findTorchPython } from './torch/torch-server.ts';

// ROOFLINE_DIFFERENTIAL_CASES: how many; _SEED: where to start; _DEVICE: cpu, cuda:N or emulated.
// ROOFLINE_DIFFERENTIAL=op:seed, as a failure prints it, runs one case of one op alone.
const [only, onlySeed] = process.env['ROOFLINE_DIFFERENTIAL']?.split(':') ?? [];
const where = process.env['ROOFLINE_DIFFERENTIAL_DEVICE'] ?? 'cpu';
const emulated = where === 'emulated';
// Each variant of a kernel takes the host's compiler a second.
const cases = Number(process.env['ROOFLINE_DIFFERENTIAL_CASES'] ?? (emulated ? 150 : 1100));
const seed = Number(process.env['ROOFLINE_DIFFERENTIAL_SEED'] ?? 0);
const emulatedDTypes: readonly DType[] = ['float32'];

const python = findTorchPython();
const skipped = !python || (emulated && !hostCompilerVersion());

describe.skipIf(skipped)('every op compared to PyTorch', { timeout: 1_800_000 }, () => {
  // PyTorch checks indices; GPUs do so when asked to.
  beforeEach(() => void vi.stubEnv('ROOFLINE_CHECK_INDICES', '1'));
  afterEach(() => void vi.unstubAllEnvs());

  it(`gives what PyTorch gives, on ${where}`, async () => {
    const { failures, differing, ...ran } = await runDifferential({
      device: emulated ? openEmulatedDevice() : device(where as 'cpu'),
      python: python!,
      cases: only ? 1 : cases,
      seed: onlySeed === undefined ? seed : Number(onlySeed),
      ops: only ? [only] : undefined,
      dtypes: emulated ? emulatedDTypes : undefined,
    });
    const documented = [...differing].map(([title, count]) => `${title}: ${count}`).join(', ');
    console.log(
      `${ran.cases} cases, ${failures.length} mismatches; documented differences: ${documented || 'none'}`,
    );
    expect(describeFailures(failures)).toBe('');
  });
});
