import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';
import { buildStubs, compilerNote, hasCompiler } from '../support/stub-nccl.ts';

const allRight = { code: 0, stdout: 'all right\n', stderr: '' };

describe.skipIf(!hasGloo)(`compiled data parallelism does what it does eagerly, by Gloo${glooNote}`, () => {
  it.each([1, 2])('%i ranks', async (size) => {
    for (const result of await runRanks('compiled-data-parallel', size, ['gloo']))
      expect(result).toMatchObject(allRight);
  });

  it.each([1, 2, 3])('steps of a ShardedOptimizer, %i ranks', async (size) => {
    for (const result of await runRanks('compiled-sharded-optimizer', size, ['gloo']))
      expect(result).toMatchObject(allRight);
  });
});

describe.skipIf(!hasCompiler)(`and by NCCL's stand-in${compilerNote}`, () => {
  const variables = hasCompiler ? buildStubs() : {};

  it.each([1, 2])('%i ranks', async (size) => {
    const scenarios = ['emulated', 'SGD', 'clipping and AdamW', 'sharded AdamW', 'autocast'];
    for (const result of await runRanks('compiled-data-parallel', size, scenarios, variables))
      expect(result).toMatchObject(allRight);
  });

  it('steps of a ShardedOptimizer, 2 ranks', async () => {
    for (const result of await runRanks('compiled-sharded-optimizer', 2, ['emulated'], variables))
      expect(result).toMatchObject(allRight);
  });
});
