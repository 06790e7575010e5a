import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';
import { buildStubs, compilerNote, hasCompiler } from '../support/stub-nccl.ts';

/** What each of two ranks says, of which the last makes no backward pass in step 3. */
async function told(backend: string, mode: string, variables: Readonly<Record<string, string>> = {}) {
  const results = await runRanks('skipped-step', 2, [backend, mode], variables);
  return results.map(({ code, stdout, stderr }) => {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout) as { step: number; peers: number[]; message: string };
  });
}

const places = [
  /rank 0: allReduce\(average, step 3\) float32/,
  /rank 1: allReduce\(average, step 4\) float32/,
];

describe.skipIf(!hasGloo)(`a rank that skips a step is found in it${glooNote}`, () => {
  it.each(['naive', 'flat', 'overlap'])('by all ranks, in the mode %s', async (mode) => {
    const ranks = await told('gloo', mode);
    expect(ranks).toMatchObject([
      { step: 3, peers: [1] },
      { step: 4, peers: [0] },
    ]);
    for (const { message } of ranks) for (const place of places) expect(message).toMatch(place);
  });
});

describe.skipIf(!hasCompiler)(`a rank that skips a step, with NCCL${compilerNote}`, () => {
  it('is found by the watchdogs, and the error of a later call names both steps', async () => {
    for (const { step, message } of await told('emulated', 'overlap', buildStubs())) {
      for (const place of places) expect(message).toMatch(place);
      expect(step).toBeLessThan(100);
    }
  });
});
