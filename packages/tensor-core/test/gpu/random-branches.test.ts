import { describe, vi } from 'vitest';
import { device } from '../../src/index.ts';
import { itCompilesRandomPrograms } from '../program/random-programs.ts';

const seed = Number(process.env['PROGRAM_SEED'] ?? 11);
const cases = Number(process.env['PROGRAM_CASES'] ?? 300);

vi.mock(
  '../../src/devices/cuda/program/branches/assign-branches.ts',
  () => import('../program/drawn-branches.ts'),
);

describe.each([2, 4])('random programs on CUDA, on %d branches drawn at random', (branches) =>
  itCompilesRandomPrograms(() => device('cuda'), seed, cases, { branches }),
);
