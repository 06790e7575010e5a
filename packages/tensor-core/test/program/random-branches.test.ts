import { describe, vi } from 'vitest';
import { hostCompilerVersion, openEmulatedDevice } from '../../src/testing.ts';
import { itCompilesRandomPrograms } from './random-programs.ts';

const seed = Number(process.env['PROGRAM_SEED'] ?? 29);
const cases = Number(process.env['PROGRAM_CASES'] ?? 60);

const drawn = vi.hoisted(() => ({ state: 1 }));

// Any assignment must be right, so that the worst there are serve as well as good ones.
vi.mock('../../src/devices/cuda/program/branches/assign-branches.ts', () => {
  const draw = (below: number) => {
    drawn.state = (Math.imul(drawn.state, 1664525) + 1013904223) >>> 0;
    return (drawn.state >>> 16) % below;
  };
  return {
    assignBranches: (calls: readonly unknown[], _: unknown, branches: number) => ({
      ofCalls: calls.map(() => draw(branches)),
      doneBy: calls.map((__, i) => Math.min(calls.length - 1, i + draw(3))),
    }),
  };
});

describe.skipIf(hostCompilerVersion() === null)('random programs on branches drawn at random', () => {
  describe.each([2, 3, 4])('%d of them', (branches) => {
    const device = openEmulatedDevice(2 ** 30, undefined, undefined, branches);
    itCompilesRandomPrograms(() => device, seed + branches, cases, { branches });
  });
});
