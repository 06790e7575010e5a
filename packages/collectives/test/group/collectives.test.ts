import { describe, expect, it } from 'vitest';
import { glooNote, hasGloo, runRanks } from '../support/run-ranks.ts';

describe.skipIf(!hasGloo)(`every collective in every dtype${glooNote}`, () => {
  it.each([1, 2, 3, 4])('%i ranks', async (size) => {
    const results = await runRanks('collectives', size);
    for (const { code, stdout, stderr } of results)
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });
});
