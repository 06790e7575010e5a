import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';
import { buildStubs, compilerNote, hasCompiler } from '../support/stub-nccl.ts';

const allRight = { code: 0, stdout: 'all right\n', stderr: '' };

describe.skipIf(!hasGloo)(`fully sharded parameters, by Gloo${glooNote}`, () => {
  it.each([
    [1, ['equality', 'generation', 'deferred', 'errors']],
    [2, []],
    [4, ['equality', 'data-parallel', 'hybrid', 'optimizer']],
  ] as const)('%i ranks', async (size, scenarios) => {
    for (const { code, stdout, stderr } of await runRanks('fully-sharded', size, ['gloo', ...scenarios]))
      expect({ code, stdout, stderr }).toEqual(allRight);
  });
});

describe.skipIf(!hasCompiler)(`fully sharded parameters, by NCCL's stand-in${compilerNote}`, () => {
  const variables = hasCompiler ? buildStubs() : {};

  it('2 ranks', async () => {
    const scenarios = ['equality', 'memory', 'scaler', 'generation'];
    for (const { code, stdout, stderr } of await runRanks(
      'fully-sharded',
      2,
      ['emulated', ...scenarios],
      variables,
    ))
      expect({ code, stdout, stderr }).toEqual(allRight);
  });
});

describe.skipIf(!hasGloo)(
  `compiled steps of sharded parameters do what eager ones do, by Gloo${glooNote}`,
  () => {
    it.each([
      [2, []],
      [4, ['bfloat16 block chunked', 'clipping', 'hybrid']],
    ] as const)('%i ranks', async (size, scenarios) => {
      for (const result of await runRanks('compiled-sharded', size, ['gloo', ...scenarios]))
        expect(result).toMatchObject(allRight);
    });
  },
);

describe.skipIf(!hasCompiler)(`and by NCCL's stand-in${compilerNote}`, () => {
  const variables = hasCompiler ? buildStubs() : {};

  it.each([
    [1, ['AdamW']],
    [2, ['AdamW', 'bfloat16 block chunked', 'two blocks', 'accumulation']],
  ] as const)('%i ranks', async (size, scenarios) => {
    for (const result of await runRanks('compiled-sharded', size, ['emulated', ...scenarios], variables))
      expect(result).toMatchObject(allRight);
  });
});
