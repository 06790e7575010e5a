import { describe, expect, it } from 'vitest';
import { runRanks } from '../support/run-ranks.ts';
import { buildStubs, compilerNote, hasCompiler } from '../support/stub-nccl.ts';

describe.skipIf(!hasCompiler)(`NCCL, by a stand-in that moves data${compilerNote}`, () => {
  const variables = hasCompiler ? buildStubs() : {};

  it.each([1, 2, 3])('every collective in every dtype, %i ranks', async (size) => {
    const results = await runRanks('nccl-collectives', size, [], variables);
    for (const { code, stdout, stderr } of results)
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
