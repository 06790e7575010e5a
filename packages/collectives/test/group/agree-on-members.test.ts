import { afterAll, describe, expect, it } from 'vitest';
import { agreeOnMembers } from '../../src/group/agree-on-members.ts';
import { AskBoard } from '../../src/group/ask-board.ts';
import { CollectiveError } from '../../src/index.ts';
import { StoreClient } from '../../src/store/store-client.ts';
import { StoreServer } from '../../src/store/store-server.ts';

const server = await StoreServer.listen({ token: '' });
const place = { host: '127.0.0.1', port: server.port, token: '' };
afterAll(() => server.close());
let worlds = 0;

type Outcome = string | CollectiveError;

/** The boards of a world's ranks, and what becomes of their asks. */
async function world(size: number) {
  const prefix = `world/${worlds++}`;
  const boards = await Promise.all(
    Array.from({ length: size }, async (_, rank) => {
      const client = await StoreClient.connect(place);
      afterAll(() => client.close());
      return new AskBoard(client, prefix, rank);
    }),
  );
  const ask = (rank: number, list: readonly number[], timeoutMs = 20_000): Promise<Outcome> =>
    agreeOnMembers(boards[rank]!, list, timeoutMs).catch((error: unknown) => {
      if (error instanceof CollectiveError) return error;
      throw error;
    });
  /** Each rank's list, all at once; null for none. */
  const all = (lists: readonly (readonly number[] | null)[], timeoutMs?: number) =>
    Promise.all(lists.map((list, rank) => (list ? ask(rank, list, timeoutMs) : null)));
  return { ask, all };
}

/** That every rank of `lists` got the same keys, and others with another list other ones. */
function expectAgreed(outcomes: readonly (Outcome | null)[], ...lists: readonly (readonly number[])[]): void {
  const prefixes = lists.map((list) => {
    const found = new Set(list.map((rank) => outcomes[rank]));
    expect([...found]).toEqual([expect.any(String)]);
    return [...found][0];
  });
  expect(new Set(prefixes).size).toBe(lists.length);
}

const pass = async (ms: number) => await new Promise((resolve) => setTimeout(resolve, ms));

describe('members of a group', () => {
  it('agree, also while other groups form, again and again, and with themselves', async () => {
    const { all } = await world(4);
    const seen = new Set<Outcome | null>();
    for (let i = 0; i < 5; i++) {
      for (const lists of [
        [[0, 1, 2, 3]],
        [
          [0, 2],
          [3, 1],
        ],
        [[2, 1, 0], [3]],
      ]) {
        const outcomes = await all([0, 1, 2, 3].map((rank) => lists.find((list) => list.includes(rank))!));
        expectAgreed(outcomes, ...lists);
        for (const outcome of outcomes) expect(seen).not.toContain(outcome);
        for (const outcome of outcomes) seen.add(outcome);
      }
    }
  });

  it('agree however late they come, and whatever they ask for before', async () => {
    const { ask } = await world(3);
    const [second, third] = [ask(1, [0, 1]), ask(2, [0, 2])];
    await pass(700);
    const first = [await ask(0, [0, 1]), await ask(0, [0, 2])];
    expect(first).toEqual([await second, await third]);
  });

  it('agree, and learn who does not, also where they are many', async () => {
    const { all } = await world(24);
    const everyone = Array.from({ length: 24 }, (_, rank) => rank);
    for (let i = 0; i < 3; i++) expectAgreed(await all(everyone.map(() => everyone)), everyone);
    const outcomes = await all(everyone.map((rank) => (rank === 20 ? everyone.toReversed() : everyone)));
    for (const [rank, outcome] of outcomes.entries()) {
      expect(outcome).toBeInstanceOf(CollectiveError);
      const { peers } = outcome as CollectiveError;
      expect(rank === 20 ? peers.length > 0 : peers).toEqual(rank === 20 || [20]);
    }
    expectAgreed(await all(everyone.map(() => everyone)), everyone);
  });

  it('agree in calls that run at once', async () => {
    const { ask } = await world(3);
    const lists = [[0, 1], [0, 1, 2], [0, 1], [2, 0]]; // prettier-ignore
    const askAll = (rank: number) =>
      Promise.all(lists.map((list) => (list.includes(rank) ? ask(rank, list) : null)));
    const [zero, one, two] = await Promise.all([askAll(0), askAll(1), askAll(2)]);
    expect(one).toEqual([zero![0], zero![1], zero![2], null]);
    expect(two).toEqual([null, zero![1], null, zero![3]]);
    expect(new Set(zero).size).toBe(4);
  });

  it.each<[string, readonly (readonly number[] | null)[], readonly (readonly number[] | null)[]]>([
    ['in another order', [[0, 1], [1, 0]], [[1], [0]]], // prettier-ignore
    ['with one more', [[0, 1], [0, 1, 2], null], [[1], [0], null]], // prettier-ignore
    // Rank 1 learns of it, though no rank asks for less with it.
    ['with one less', [[0, 1, 2], [0, 1, 2], [0, 2]], [[2], [2], [0]]], // prettier-ignore
    ['all others', [[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3], [1, 2, 3, 0]], [[1, 3], [0, 2, 3], [1, 3], [0, 1, 2]]], // prettier-ignore
  ])(
    'learn at once, on every rank, who asks for a list %s; then they may ask again',
    async (_, lists, peers) => {
      const { all } = await world(lists.length);
      for (let round = 0; round < 4; round++) {
        const startMs = performance.now();
        const outcomes = await all(lists);
        expect(performance.now() - startMs).toBeLessThan(10_000);
        outcomes.forEach((outcome, rank) => {
          if (!lists[rank]) return;
          expect(outcome).toBeInstanceOf(CollectiveError);
          const { op, rank: own, peers: named, message } = outcome as CollectiveError;
          expect({ op, own }).toEqual({ op: 'subGroup', own: rank });
          // Others of another list may have been seen, or not yet.
          expect(named).toEqual(expect.arrayContaining(peers[rank] as number[]));
          for (const peer of named) expect(lists[peer]).not.toEqual(lists[rank]);
          for (const list of lists) if (list) expect(message).toContain(`: ${list.join(', ')}`);
          expect(message).toMatch(/ask for different groups.*one list in one order/);
        });
        const everyone = lists.map((_list, rank) => rank);
        expectAgreed(await all(everyone.map(() => everyone)), everyone);
      }
    },
  );

  it('learn what the others asked for, also by a rank that comes a little later', async () => {
    const { ask } = await world(3);
    const early = [ask(0, [0, 1, 2]), ask(2, [0, 2])];
    await pass(300);
    const startMs = performance.now();
    const outcomes = await Promise.all([...early, ask(1, [0, 1, 2])]);
    expect(performance.now() - startMs).toBeLessThan(10_000);
    for (const outcome of outcomes) expect(String(outcome)).toMatch(/rank 2: 0, 2\)/);
  });

  it('learn it where they come when these have given up, unless these ask again', async () => {
    const { ask, all } = await world(3);
    const [first, third] = await Promise.all([ask(0, [0, 1, 2]), ask(2, [0, 2])]);
    for (const outcome of [first, third])
      expect(String(outcome)).toMatch(/\(rank 0: 0, 1, 2; rank 2: 0, 2\)/);
    const startMs = performance.now();
    const late = await ask(1, [0, 1, 2]);
    expect(performance.now() - startMs).toBeLessThan(10_000);
    expect(late).toMatchObject({ op: 'subGroup', rank: 1, peers: [2] });
    expect(String(late)).toMatch(/\(ranks 0 and 1: 0, 1, 2; rank 2: 0, 2\)/);
    expectAgreed(await all([[0, 1, 2], [0, 1, 2], [0, 1, 2]]), [0, 1, 2]); // prettier-ignore
    await Promise.all([ask(0, [0, 1, 2]), ask(2, [0, 2])]);
    const again = ask(1, [0, 1, 2]);
    await pass(300);
    const others = await all([[0, 1, 2], null, [0, 1, 2]]);
    expect([others[0], others[2]]).toEqual([await again, await again]);
  });

  it('that do not come in time are named, with what they asked for last', async () => {
    const { ask, all } = await world(2);
    await ask(0, [0]);
    const late = await ask(1, [0, 1], 500);
    expect(late).toMatchObject({ op: 'subGroup', rank: 1, peers: [0] });
    expect(String(late)).toMatch(
      /rank 0 did not come within 500 ms \(rank 1 asked for 0, 1; rank 0 asked last for 0\)/,
    );
    expectAgreed(await all([[0, 1], [0, 1]]), [0, 1]); // prettier-ignore
  });
});
