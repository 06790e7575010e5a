import { describe, expect, it } from 'vitest';
import type { Told } from '../support/kill-ranks.ts';
import { glooNote, hasGloo, runRanks, withRanks } from '../support/run-ranks.ts';
import { freePort } from '../support/free-port.ts';

/** Some milliseconds on an idle machine, where what it bounds would take 20 s or more if it waited for the other rank. */
const soonMs = 10_000;

const isEverySuccessful = async (fault: string, size: number) => {
  const results = await runRanks('faults', size, [fault]);
  for (const { code, stdout, stderr } of results)
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
};

describe.skipIf(!hasGloo)(`faults${glooNote}`, () => {
  it.each([
    ['mismatch', 2],
    ['mismatch', 3],
    ['leaves', 3],
    ['disposed', 2],
    ['written', 2],
    ['again', 2],
    ['together', 1],
    ['lists', 2],
  ] as const)('%s, %i ranks', isEverySuccessful);

  it.each(['recv', 'send', 'broadcast'])('kill -9 in the middle of a message: %s', async (call) => {
    const [first, second] = await runRanks('faults', 2, ['midway', call]);
    expect(second!.signal).toBe('SIGKILL');
    expect(first).toMatchObject({ code: 0, stdout: 'all right\n', stderr: '' });
  });

  it('others agree on a group while the rank that hosts the store is blocked', async () => {
    for (const { code, stdout, stderr } of await runRanks('faults', 3, ['blocked', String(await freePort())]))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });

  it('groups one after the other by the stores of rank 0, which is slower to leave', async () => {
    for (const { code, stdout, stderr } of await runRanks('faults', 2, ['hosted', String(await freePort())]))
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'all right\n', stderr: '' });
  });

  it('a process that never asked about mismatched calls ends with an error', async () => {
    for (const [rank, { code, stdout, stderr }] of (await runRanks('faults', 2, ['unheard'])).entries()) {
      expect({ code, stdout }).toEqual({ code: 1, stdout: 'all right\n' });
      expect(stderr).toContain(
        `CollectiveError: ${['broadcast', 'barrier'][rank]}: the ranks do not call the same`,
      );
      expect(stderr).not.toContain('allReduce');
    }
  });

  it('a process ends by itself, with calls that nothing waits for', async () => {
    for (let round = 0; round < 2; round++) await isEverySuccessful('natural', 2);
  });

  it('a rank that wakes up when the others have ended has all that they sent', async () => {
    await withRanks(
      'faults',
      3,
      async ([slow, ...others]) => {
        await slow!.printed('waits');
        slow!.child.kill('SIGSTOP');
        for (const { code, stderr } of await Promise.all(others.map(({ result }) => result)))
          expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        slow!.child.kill('SIGCONT');
        const { code, stdout, stderr } = await slow!.result;
        expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'waits\nall right\n', stderr: '' });
      },
      ['slowest'],
    );
  });

  it('process.exit with a call in flight takes no time', async () => {
    await withRanks(
      'faults',
      2,
      async ([first]) => {
        const { code, stdout } = await first!.result;
        const exitMs = Date.now() - Number(/exits (\d+)/.exec(stdout)![1]);
        expect(code).toBe(7);
        expect(exitMs).toBeLessThan(soonMs);
      },
      ['exits'],
    );
  });

  it.each([
    ['100', 2, 1],
    ['100000', 4, 2],
    ['2000000', 3, 0],
  ] as const)(
    'kill -9 in all-reduces of %s elements by %i ranks: rank %i is named by all',
    async (elements, size, victim) => {
      await withRanks(
        'loop',
        size,
        async (ranks) => {
          await Promise.all(ranks.map((rank) => rank.printed('running')));
          const killedMs = Date.now();
          ranks[victim]!.child.kill('SIGKILL');
          const results = await Promise.all(ranks.map(({ result }) => result));
          expect(results[victim]!.signal).toBe('SIGKILL');
          for (const [rank, { code, stdout }] of results.entries()) {
            if (rank === victim) continue;
            const told = JSON.parse(stdout.split('\n')[1]!) as Told;
            expect(told).toMatchObject({ op: 'allReduce', rank, peers: [victim] });
            expect(told.message).toContain(`rank ${victim} is gone`);
            expect(told.atMs - killedMs).toBeLessThan(soonMs);
            // A call after that fails with the same words, which the script prints if not.
            expect(stdout).not.toContain('later');
            expect(code).toBe(1);
          }
        },
        [elements],
      );
    },
  );

  it('a rank that is stopped, and wakes up when its own time is over too, learns that it was late', async () => {
    await withRanks(
      'loop',
      3,
      async (ranks) => {
        const [, victim] = ranks;
        await Promise.all(ranks.map((rank) => rank.printed('running')));
        victim!.child.kill('SIGSTOP');
        await Promise.all([ranks[0]!.printed('{'), ranks[2]!.printed('{')]);
        await new Promise((resolve) => setTimeout(resolve, 3000));
        victim!.child.kill('SIGCONT');
        const { stdout } = await victim!.result;
        const told = JSON.parse(stdout.split('\n')[1]!) as Told;
        expect(told.message).toContain('the others have given up waiting for this rank');
        expect(told.peers).toEqual([]);
      },
      ['2000000', 'stay', '2000', 'gloo', '0'],
    );
  });

  it('those left form a group and go on', async () => {
    await withRanks(
      'loop',
      4,
      async (ranks) => {
        await Promise.all(ranks.map((rank) => rank.printed('running')));
        ranks[1]!.child.kill('SIGKILL');
        const results = await Promise.all(ranks.map(({ result }) => result));
        for (const rank of [0, 2, 3]) {
          expect(results[rank]!.stderr).toBe('');
          expect(results[rank]).toMatchObject({ code: 0 });
          expect(results[rank]!.stdout).toContain('left 0,2,3: 5,5,5');
        }
      },
      ['1000', 'regroup'],
    );
  });
});

describe.skipIf(!hasGloo).concurrent(`faults that show when a time is over${glooNote}`, () => {
  it.each([
    ['late', 2],
    ['late', 3],
    ['absent', 2],
    ['alone', 2],
    ['lists', 4],
  ] as const)('%s, %i ranks', isEverySuccessful);

  // Few elements: most of the time goes into agreeing on the call. Many: into moving them.
  it.each([
    ['100', 'eager'],
    ['5000000', 'eager'],
    ['5000000', 'compiled'],
    ['100000', 'compiled sharded'],
  ])(
    'a rank that is stopped among %s elements, %s, is late, and killing it later harms no other',
    async (elements, execution) => {
      await withRanks(
        'loop',
        3,
        async (ranks) => {
          await Promise.all(ranks.map((rank) => rank.printed('running')));
          ranks[2]!.child.kill('SIGSTOP');
          const [first, second] = await Promise.all([ranks[0]!.result, ranks[1]!.result]);
          for (const { code, stdout } of [first, second]) {
            const told = JSON.parse(stdout.split('\n')[1]!) as Told;
            // The second may learn of it by the first one's word, or by the end of its connections.
            expect(told.message).toContain('rank 2 did not come in time (');
            expect(told.peers).toEqual([2]);
            expect(code).toBe(1);
          }
        },
        [elements, 'exit', '6000', 'gloo', '10000', execution],
      );
    },
  );
});
