import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { itCompilesRandomPrograms } from '../program/random-programs.ts';

const seed = Number(process.env['PROGRAM_SEED'] ?? 11);
const cases = Number(process.env['PROGRAM_CASES'] ?? 300);

describe('random programs on CUDA', () => itCompilesRandomPrograms(() => device('cuda'), seed, cases));
