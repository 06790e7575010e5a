import { cudaDeviceCount } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { describeSurvivals, killOne } from '../support/kill-ranks.ts';
import { runRanks, withRanks } from '../support/run-ranks.ts';

const count = cudaDeviceCount();
const timeoutMs = 3000;
/** How long the ranks that are left may ask a dead one how far it came, and processes take to notice. */
const askingMs = 3000;
const kills = 20;
/** Pairs at once: start-up takes longer than all else. */
const pairs = 5;

describe.skipIf(count < 2)(
  `NCCL's faults between two GPUs${count < 2 ? ` (skipped: ${count} GPUs)` : ''}`,
  () => {
    it.each([
      ...(['eager', 'compiled', 'symmetric', 'compiled symmetric'] as const),
      ...(['sharded', 'compiled sharded'] as const),
    ])(
      'kill -9 in a loop of all-reduces, or of steps of sharded parameters: %s, 20 times: the survivor learns who is gone, and ends',
      async (execution) => {
        for (let kill = 0; kill < kills; kill += pairs) {
          const killings = Array.from({ length: pairs }, (_, i) => {
            const victim = (kill + i) % 2;
            return {
              backend: 'nccl',
              size: 2,
              victim,
              elements: 100_000 * (1 + i),
              timeoutMs,
              execution,
            } as const;
          });
          const survivals = await Promise.all(killings.map(killOne));
          for (const [i, { victim }] of killings.entries()) {
            console.log(`kill ${kill + i}, of rank ${victim}: ${describeSurvivals(survivals[i]!)}`);
            const [{ told, delayMs, code }] = survivals[i]! as [(typeof survivals)[number][number]];
            expect(told).toMatchObject({ rank: 1 - victim, peers: [victim] });
            expect(told.message).toContain(`rank ${victim} is gone`);
            expect(delayMs).toBeLessThan(timeoutMs + askingMs);
            expect(code).toBe(1);
          }
        }
      },
      240_000,
    );

    it('the one left forms a group and goes on', async () => {
      await withRanks(
        'loop',
        2,
        async (ranks) => {
          await Promise.all(ranks.map((rank) => rank.printed('running')));
          ranks[1]!.child.kill('SIGKILL');
          const { code, stdout, stderr } = await ranks[0]!.result;
          expect(stderr).toBe('');
          expect(code).toBe(0);
          expect(stdout).toContain('left 0: 0,0,0');
        },
        ['1000', 'regroup', String(timeoutMs), 'nccl'],
      );
    }, 60_000);

    it.concurrent.each(['late-first', 'late-later', 'mismatch'])(
      '%s',
      async (fault) => {
        for (const { code, stdout, stderr } of await runRanks('nccl-absences', 2, [fault])) {
          expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
          expect(stdout).toContain('all right');
          console.log(stdout.trim());
        }
      },
      60_000,
    );

    it('process.exit with a call in flight takes no time', async () => {
      await withRanks(
        'nccl-absences',
        2,
        async ([first]) => {
          const { code, stdout } = await first!.result;
          expect(code).toBe(7);
          expect(Date.now() - Number(/exits (\d+)/.exec(stdout)![1])).toBeLessThan(3000);
        },
        ['exits'],
      );
    }, 60_000);
  },
);
