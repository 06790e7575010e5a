import { describe } from 'vitest';
import { hostCompilerVersion, openEmulatedDevice } from '../../src/testing.ts';
import { itCompilesRandomPrograms } from './random-programs.ts';

const seed = Number(process.env['PROGRAM_SEED'] ?? 13);
const cases = Number(process.env['PROGRAM_CASES'] ?? 60);

describe.skipIf(hostCompilerVersion() === null)('random programs on an emulated GPU', () => {
  const device = openEmulatedDevice();
  itCompilesRandomPrograms(() => device, seed, cases);
});
