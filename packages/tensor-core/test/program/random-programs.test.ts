// Is alone in a process: ops run in as many threads as there are cores.
import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { itCompilesRandomPrograms } from './random-programs.ts';

const seed = Number(process.env['PROGRAM_SEED'] ?? 7);
const cases = Number(process.env['PROGRAM_CASES'] ?? 300);

describe('random programs', () => itCompilesRandomPrograms(() => device('cpu'), seed, cases));
