import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';

describe.skipIf(!hasGloo)(`training on several ranks is training on one${glooNote}`, () => {
  it.each([1, 2, 4])('%i ranks', async (size) => {
    const results = await runRanks('data-parallel', size);
    for (const { code, stdout, stderr } of results)
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
