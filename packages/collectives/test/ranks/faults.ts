import { deepStrictEqual, match, ok, rejects, throws } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { arange, cast, fillInPlace, full, ones, zeros } from '@roofline/tensor-core';
import { CollectiveError, type ProcessGroup, type Work, initProcessGroup } from '@roofline/collectives';

// One fault, by name, on every rank; each rank checks what is reported to it.

const [fault] = process.argv.slice(2);

function errorOf(start: () => Work): CollectiveError {
  try {
    start().wait();
  } catch (error) {
    if (error instanceof CollectiveError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

function stillWorks(group: ProcessGroup): void {
  const x = ones([3]);
  group.allReduce(x).wait();
  deepStrictEqual(x.toFlatArray(), [group.size, group.size, group.size]);
}

const faults: Readonly<Record<string, () => Promise<void>>> = {
  /** The first rank is stopped as soon as it waits; the others come to the call, and end. */
  async slowest() {
    const group = await initProcessGroup({ backend: 'gloo' });
    group.barrier().wait();
    if (group.rank > 0) await sleep(2000);
    const work = group.barrier();
    // Stopped before it has announced itself to the others, it would be late.
    if (group.rank === 0) {
      await sleep(500);
      console.log('waits');
    }
    work.wait();
  },

  async mismatch() {
    const group = await initProcessGroup({ backend: 'gloo' });
    const { rank, size } = group;
    const isOdd = rank === 1;
    const others = Array.from({ length: size }, (_, i) => i).filter((member) => member !== 1);
    const peers = isOdd ? others : [1];
    const cases: readonly [() => Work, RegExp][] = [
      [() => group.allReduce(ones(isOdd ? [3, 2] : [2, 3])), /rank 1: allReduce\(sum\) float32 \[3, 2\]/],
      [() => group.allReduce(ones([isOdd ? 70_000 : 70_001])), /\[70001\]/],
      [() => group.allReduce(cast(ones([4]), isOdd ? 'int32' : 'float32')), /allReduce\(sum\) int32 \[4\]/],
      [() => group.allReduce(ones([4]), { op: isOdd ? 'max' : 'sum' }), /allReduce\(max\) float32 \[4\]/],
      [
        () => (isOdd ? group.broadcast(ones([4]), 0) : group.allReduce(ones([4]))),
        /rank 1: broadcast\(root 0\)/,
      ],
      [() => (isOdd ? group.barrier() : group.allReduce(ones([4]))), /rank 1: barrier/],
      [() => group.broadcast(ones([4]), isOdd ? 1 : 0), /broadcast\(root 1\)/],
      [() => group.allReduce(ones(isOdd ? [0] : [1])), /\[0\]/],
      [
        () =>
          group.allReduce(ones([...Array<number>(70).fill(1), isOdd ? 2 : 3, ...Array<number>(30).fill(1)])),
        /#/,
      ],
    ];
    for (const [start, message] of cases) {
      const error = errorOf(start);
      match(error.message, message);
      match(error.message, /nothing was sent/);
      deepStrictEqual([error.rank, error.peers], [rank, peers]);
      stillWorks(group);
    }
    await rejects(
      group.allGather(zeros([size, isOdd ? 1 : 2]), zeros([isOdd ? 1 : 2])).done,
      CollectiveError,
    );
    stillWorks(group);
    if (rank < 2) {
      const error = errorOf(() => (rank === 0 ? group.send(ones([2]), 1) : group.recv(zeros([3]), 0)));
      match(error.message, /rank 0: send and recv float32 \[2\].*|rank 1: send and recv float32 \[3\]/);
      deepStrictEqual([error.op, error.peer], [rank === 0 ? 'send' : 'recv', 1 - rank]);
      const x = rank === 0 ? ones([2]) : zeros([2]);
      (rank === 0 ? group.send(x, 1) : group.recv(x, 0)).wait();
      deepStrictEqual(x.toFlatArray(), [1, 1]);
    }
    stillWorks(group);
  },

  /** Calls that do not match, and nothing asks what became of them. */
  async unheard() {
    const group = await initProcessGroup({ backend: 'gloo' });
    group.allReduce(ones([group.rank + 1]));
    stillWorks(group);
    await rejects(group.allReduce(ones([group.rank + 1])).done, CollectiveError);
    if (group.rank === 0) group.broadcast(ones([3]), 0);
    else group.barrier();
  },

  /** Rank 1 does not come to a collective: all others say that it is late, not each other. */
  async late() {
    // On a busy machine ranks may start seconds apart.
    const timeoutMs = 5000;
    const group = await initProcessGroup({ backend: 'gloo', timeoutMs });
    stillWorks(group);
    if (group.rank === 1) {
      await sleep(2 * timeoutMs);
      const error = errorOf(() => group.allReduce(ones([3])));
      deepStrictEqual([error.op, error.rank], ['allReduce', 1]);
      match(error.message, /the others have given up waiting for this rank/);
      return;
    }
    // Not all at the same moment: the first whose time is over notifies the others.
    await sleep(group.rank * 50);
    const startMs = performance.now();
    const error = errorOf(() => group.allReduce(ones([3])));
    const waitedMs = performance.now() - startMs;
    deepStrictEqual([error.op, error.rank, error.peers], ['allReduce', group.rank, [1]]);
    match(error.message, /rank 1 did not come in time/);
    ok(waitedMs > timeoutMs - 300 && waitedMs < 2 * timeoutMs, `waited ${waitedMs} ms`);
    await sleep(2 * timeoutMs + 1000 - waitedMs);
  },

  /** A rank that leaves by exiting while others need it. */
  async leaves() {
    const group = await initProcessGroup({ backend: 'gloo' });
    stillWorks(group);
    if (group.rank === 1) return;
    const error = errorOf(() => group.allReduce(ones([3])));
    deepStrictEqual([error.peers, error.rank], [[1], group.rank]);
    match(error.message, /rank 1 is gone/);
  },

  /** Ends by process.exit while a call waits for rank 1, which never comes. */
  async exits() {
    const group = await initProcessGroup({ backend: 'gloo' });
    stillWorks(group);
    if (group.rank === 1) {
      await sleep(20_000);
      process.exit(0);
    }
    const x = ones([1000]);
    group.allReduce(x);
    await sleep(200);
    console.log(`exits ${Date.now()}`);
    process.exit(7);
  },

  /** Ends without dispose() and without waiting. */
  async natural() {
    const group = await initProcessGroup({ backend: 'gloo' });
    for (let i = 0; i < 5; i++) group.allReduce(arange(100_000));
    group.barrier();
  },

  async disposed() {
    const group = await initProcessGroup({ backend: 'gloo' });
    stillWorks(group);
    if (group.rank === 1) {
      await sleep(500);
      return;
    }
    const x = full([10], 1);
    const work = group.allReduce(x);
    const failed = rejects(work.done, /the group was disposed meanwhile/);
    await sleep(100);
    group.dispose();
    group.dispose();
    await failed;
    throws(() => work.wait(), CollectiveError);
    deepStrictEqual(x.storage.references, 1);
    throws(() => group.allReduce(x), {
      name: 'DisposedError',
      message: /^allReduce: the group was used after it had been disposed/,
    });
    deepStrictEqual(x.storage.references, 1);
  },

  /** What is under way cannot be written to; afterwards it can. */
  async written() {
    const group = await initProcessGroup({ backend: 'gloo' });
    const x = full([200_000], 1);
    const work = group.allReduce(x);
    throws(() => fillInPlace(x, 2), /fill_: cannot write to \[200000\] while allReduce, which is under way/);
    work.wait();
    deepStrictEqual(x.toFlatArray()[0], group.size);
    fillInPlace(x, 2);
    stillWorks(group);
  },

  /** Groups of all ranks one after the other and side by side, by one store. */
  async again() {
    for (let round = 0; round < 3; round++) {
      // Rank 0 finds what rank 1 left there for the round before, if it looks there.
      if (process.env['RANK'] === '1') await sleep(500);
      const group = await initProcessGroup({ backend: 'gloo' });
      stillWorks(group);
      group.dispose();
    }
    // Asked for at once, they are made one after the other.
    const [first, second] = await Promise.all([
      initProcessGroup({ backend: 'gloo' }),
      initProcessGroup({ backend: 'gloo' }),
    ]);
    stillWorks(first);
    stillWorks(second);
    const part = await second.subGroup([0, 1]);
    stillWorks(part);
  },

  /** Two ranks of one process, which come at once. */
  async together() {
    const options = { backend: 'gloo', worldSize: 2, timeoutMs: 5000 } as const;
    for (let round = 0; round < 2; round++) {
      const groups = await Promise.all([0, 1].map((rank) => initProcessGroup({ ...options, rank })));
      await Promise.all(groups.map((group) => group.barrier().done));
      for (const group of groups) group.dispose();
    }
  },

  /** Rank 1 is killed while messages of 200 MB are on their way from it, or to it. */
  async midway() {
    const group = await initProcessGroup({ backend: 'gloo' });
    const x = zeros([50_000_000]);
    group.barrier().wait();
    const [, , , call] = process.argv;
    const start = (): Work => {
      if (call === 'broadcast') return group.broadcast(x, 1);
      const isSender = (call === 'send') === (group.rank === 0);
      return isSender ? group.send(x, 1 - group.rank) : group.recv(x, 1 - group.rank);
    };
    const startMs = performance.now();
    if (group.rank === 1) setTimeout(() => process.kill(process.pid, 'SIGKILL'), 20);
    // One after the other: on a busy machine the first may have come through before the timer is heard.
    const messages = async () => {
      for (let message = 0; message < 50; message++) await start().done;
    };
    const error = await messages().catch((thrown: unknown) => thrown);
    ok(error instanceof CollectiveError);
    deepStrictEqual([error.op, error.peers], [call, [1]]);
    match(error.message, /rank 1 is gone/);
    ok(performance.now() - startMs < 25_000, 'within the timeout');
    group.dispose();
  },

  /** The rank that hosts the store is blocked by its wait for others, which are still to agree on a group of theirs. */
  async blocked() {
    const masterPort = Number(process.argv[3]);
    const group = await initProcessGroup({ backend: 'gloo', masterAddress: '127.0.0.1', masterPort });
    if (group.rank > 0) {
      await sleep(300);
      const others = await group.subGroup([1, 2]);
      stillWorks(others);
      others.dispose();
    }
    group.barrier().wait();
    group.dispose();
  },

  /** Groups one after the other, by the stores that rank 0 hosts and ends later than the others leave. */
  async hosted() {
    const place = { masterAddress: '127.0.0.1', masterPort: Number(process.argv[3]) };
    for (let round = 0; round < 3; round++) {
      const group = await initProcessGroup({ backend: 'gloo', ...place });
      stillWorks(group);
      if (group.rank === 0)
        await rejects(initProcessGroup({ backend: 'gloo', ...place }), {
          message:
            /this process hosts the store at 127.0.0.1:\d+ for a group that lives; dispose\(\) that first/,
        });
      stillWorks(group);
      if (group.rank === 0) await sleep(300);
      group.dispose();
    }
  },

  async absent() {
    const error = await initProcessGroup({ backend: 'gloo', timeoutMs: 4000, worldSize: 4 }).catch(
      (e: unknown) => e,
    );
    ok(error instanceof CollectiveError, String(error));
    deepStrictEqual([error.op, error.peers], ['initProcessGroup', [2, 3]]);
    match(error.message, /ranks 2 and 3 did not come within 4000 ms/);
  },

  /** Sub-groups of which ranks have different lists; the group goes on, and makes others. */
  async lists() {
    const group = await initProcessGroup({ backend: 'gloo' });
    const { rank, size } = group;
    const everyone = Array.from({ length: size }, (_, member) => member);
    const cases: readonly ((member: number) => number[])[] = [
      (member) => (member === 1 ? everyone.toReversed() : everyone),
      (member) => (member === size - 1 ? [member, 0] : everyone),
    ];
    for (const listOf of cases) {
      // One comes when the others have given up, and they wait for it in the next call.
      if (rank === 1 && size > 2) await sleep(3000);
      const own = listOf(rank).join(', ');
      const startMs = performance.now();
      const error = await group.subGroup(listOf(rank)).catch((e: unknown) => e);
      ok(error instanceof CollectiveError, String(error));
      ok(performance.now() - startMs < 20_000, 'within the timeout');
      deepStrictEqual([error.op, error.rank], ['subGroup', rank]);
      ok(
        error.peers.length > 0 && error.peers.every((peer) => listOf(peer).join(', ') !== own),
        `${error.peers}`,
      );
      for (const peer of [rank, ...error.peers])
        match(error.message, new RegExp(`ranks? [^:]*${peer}[^:]*: ${listOf(peer).join(', ')}[;)]`));
      stillWorks(group);
      const again = await group.subGroup(everyone);
      stillWorks(again);
      again.dispose();
    }
  },

  /** A sub-group that one rank alone asks for. */
  async alone() {
    const group = await initProcessGroup({ backend: 'gloo', timeoutMs: 4000 });
    if (group.rank === 0) {
      const error = await group.subGroup([0, 1]).catch((e: unknown) => e);
      ok(error instanceof CollectiveError, String(error));
      deepStrictEqual([error.op, error.peers], ['subGroup', [1]]);
      match(error.message, /subGroup: rank 1 did not come within 4000 ms.*does it call subGroup\(\) too/);
    } else await sleep(6000);
  },
};

await faults[fault!]!();
console.log('all right');
