import { describe, expect, it } from 'vitest';
import { describeSurvivals, killOne } from '../support/kill-ranks.ts';
import { glooNote, hasGloo } from '../support/run-ranks.ts';

/** ROOFLINE_KILLS=20 for more, with the delays printed. */
const count = Number(process.env['ROOFLINE_KILLS'] ?? 2);
const kills = Array.from({ length: count }, (_, i) => i);

describe.skipIf(!hasGloo).each(['eager', 'compiled', 'sharded', 'compiled sharded'] as const)(
  `kill -9 of one rank in a loop of all-reduces, or of steps of sharded parameters: %s, by Gloo${glooNote}`,
  (execution) => {
    it.each(kills)('kill %i: the survivors learn of it at once, and end', async (kill) => {
      const [size, elements] = [2 + (kill % 3), [100, 100_000, 2_000_000][Math.floor(kill / 3) % 3]!];
      const victim = kill % size;
      const survivals = await killOne({
        backend: 'gloo',
        size,
        victim,
        elements,
        timeoutMs: 30_000,
        execution,
      });
      if (count > 2)
        console.log(
          `kill ${kill}, rank ${victim} of ${size}, ${elements} elements\n${describeSurvivals(survivals)}`,
        );
      expect(survivals).toHaveLength(size - 1);
      for (const { told, delayMs, code } of survivals) {
        expect(told.peers).toEqual([victim]);
        expect(execution.endsWith('sharded') ? ['allGather', 'reduceScatter'] : ['allReduce']).toContain(
          told.op,
        );
        expect(told.message).toContain(`rank ${victim} is gone`);
        // Some milliseconds on an idle machine: its connections end with the process, and not the timeout.
        expect(delayMs).toBeLessThan(10_000);
        expect(code).toBe(1);
      }
    });
  },
);
