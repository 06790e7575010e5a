import { describe, expect, it } from 'vitest';
import { TwoHosts, hasNamespaces } from '../support/network-namespaces.ts';
import { glooNote, hasGloo, startScript } from '../support/run-ranks.ts';

const note = hasNamespaces ? '' : ' (skipped: may not make network namespaces)';

describe.skipIf(!hasGloo || !hasNamespaces)(`Gloo across two hosts${glooNote}${note}`, () => {
  it.each([
    ['allReduce', 'eager'],
    ['allGather|reduceScatter', 'compiled sharded'],
  ])(
    'runs over the cable; where it is cut, both name the other when their time is over: %s, %s',
    async (op, execution) => {
      const hosts = TwoHosts.open()!;
      const ranks = ([0, 1] as const).map((rank) =>
        startScript(
          'loop',
          ['10000', 'exit', '4000', 'gloo', '4000', execution],
          {
            ...{ RANK: String(rank), WORLD_SIZE: '2', LOCAL_RANK: '0' },
            ...{ MASTER_ADDR: hosts.addresses[0], MASTER_PORT: '29500', ROOFLINE_STORE_TOKEN: 'secret' },
          },
          hosts.prefix(rank),
        ),
      );
      try {
        await Promise.all(ranks.map((rank) => rank.printed('running')));
        hosts.cut();
        const results = await Promise.all(ranks.map(({ result }) => result));
        for (const [rank, { code, stdout }] of results.entries()) {
          const told = JSON.parse(stdout.split('\n')[1]!);
          expect(told).toMatchObject({ op: expect.stringMatching(op), rank, peers: [1 - rank] });
          expect(told.message).toMatch(/did not come in time|is gone/);
          expect(code).toBe(1);
        }
      } finally {
        for (const { child } of ranks) child.kill('SIGKILL');
        hosts.close();
      }
    },
  );
});
