import { describe, vi } from 'vitest';
import { hostCompilerVersion, openEmulatedDevice } from '../../src/testing.ts';
import { itCompilesRandomPrograms } from './random-programs.ts';

// That of random-programs-emulated.test.ts: each kernel takes the host's compiler a second.
const seed = Number(process.env['PROGRAM_SEED'] ?? 13);
const cases = Number(process.env['PROGRAM_CASES'] ?? 60);

vi.mock('../../src/devices/cuda/program/branches/assign-branches.ts', () => import('./drawn-branches.ts'));

describe.skipIf(hostCompilerVersion() === null)('random programs on branches drawn at random', () => {
  describe.each([2, 3, 4])('%d of them', (branches) => {
    const device = openEmulatedDevice(2 ** 30, undefined, undefined, branches);
    itCompilesRandomPrograms(() => device, seed, cases, { branches });
  });
});
