import { describe, expect, it } from 'vitest';
import { runRanks } from '../support/run-ranks.ts';
import { buildStubs, compilerNote, hasCompiler } from '../support/stub-nccl.ts';

const allRight = { code: 0, stdout: 'all right\n', stderr: '' };

describe.skipIf(!hasCompiler)(`all-reduces in memory that all ranks reach${compilerNote}`, () => {
  const variables = hasCompiler ? buildStubs() : {};

  it.each([2, 3])('%i ranks', async (size) => {
    for (const result of await runRanks('symmetric-memory', size, ['emulated'], variables))
      expect(result).toMatchObject(allRight);
  });

  it('end where another rank does not come', async () => {
    for (const result of await runRanks('symmetric-memory', 2, ['emulated', 'absent'], variables))
      expect(result).toMatchObject(allRight);
  });
});
