import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';
import { buildStubs, compilerNote, hasCompiler } from '../support/stub-nccl.ts';

const allRight = { code: 0, stdout: 'all right\n', stderr: '' };

describe.skipIf(!hasGloo)(`sequences divided over ranks, by Gloo${glooNote}`, () => {
  it.each([
    [1, ['attention', 'gradients', 'errors']],
    [2, []],
    [4, ['attention', 'gradients', 'training', 'traffic', 'axes']],
  ])('%i ranks', async (size, scenarios) => {
    for (const { code, stdout, stderr } of await runRanks('context-parallel', size, ['gloo', ...scenarios]))
      expect({ code, stdout, stderr }).toEqual(allRight);
  });
});

describe.skipIf(!hasCompiler)(`sequences divided over ranks, by NCCL's stand-in${compilerNote}`, () => {
  const variables = hasCompiler ? buildStubs() : {};

  it('2 ranks', async () => {
    const scenarios = ['attention', 'training', 'precision'];
    for (const { code, stdout, stderr } of await runRanks(
      'context-parallel',
      2,
      ['emulated', ...scenarios],
      variables,
    ))
      expect({ code, stdout, stderr }).toEqual(allRight);
  });
});
