import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';

describe.skipIf(!hasGloo)(`several ranks give the results of one${glooNote}`, () => {
  it.each([
    ['data-parallel', 1],
    ['data-parallel', 2],
    ['data-parallel', 4],
    ['sharded-optimizer', 1],
    ['sharded-optimizer', 2],
    ['sharded-optimizer', 4],
    ['sharded-optimizer', 3],
  ])('%s, %i ranks', async (script, size) => {
    const results = await runRanks(script, size);
    for (const { code, stdout, stderr } of results)
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
