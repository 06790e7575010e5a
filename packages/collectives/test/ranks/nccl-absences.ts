import { deepStrictEqual, match, ok, rejects, throws } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { full } from '@roofline/tensor-core';
import { CollectiveError, initProcessGroup } from '@roofline/collectives';

// Faults between two ranks on real GPUs, in which no process dies: what the argument names.

const timeoutMs = 3000;
const [fault] = process.argv.slice(2);
// Rank 1 is the more patient one, so that it hears of the other's end.
const patienceMs = process.env['RANK'] === '0' ? timeoutMs : 10 * timeoutMs;
const group = await initProcessGroup({
  backend: 'nccl',
  timeoutMs: patienceMs,
  checkCalls: fault === 'mismatch',
});
const device = group.device!;
const isFirst = group.rank === 0;
const ones = (length: number) => full([length], 1, { device });

async function fails(work: Promise<void>, peers: readonly number[], text: RegExp): Promise<void> {
  const startMs = Date.now();
  let failure: unknown = null;
  await rejects(work, (error) => Boolean((failure = error)));
  ok(failure instanceof CollectiveError, String(failure));
  match(failure.message, text);
  deepStrictEqual([failure.op, failure.rank, failure.peers], ['allReduce', group.rank, peers]);
  throws(() => group.allReduce(ones(1)).wait(), { name: 'CollectiveError', message: failure.message });
  console.log(`rank ${group.rank} was told after ${Date.now() - startMs} ms: ${failure.message}`);
}

/** Rank 1 makes no call until the other has given up. */
async function late(): Promise<void> {
  if (isFirst) {
    const startMs = Date.now();
    const { done } = group.allReduce(ones(1000));
    await fails(done, [1], /rank 1 did not come in time \(timed out after 3000 ms/);
    console.log(`of its call ${Date.now() - startMs} ms`);
    // Those left go on.
    const alone = await group.subGroup([0]);
    const x = ones(3);
    alone.allReduce(x).wait();
    deepStrictEqual(x.toFlatArray(), [1, 1, 1]);
    alone.dispose();
  } else {
    await sleep(4 * timeoutMs);
    throws(() => group.allReduce(ones(1)).wait(), /the others have given up waiting for this rank/);
  }
}

const faults: Readonly<Record<string, () => Promise<void>>> = {
  /** In the first call, in which NCCL connects the ranks. */
  'late-first': late,

  async 'late-later'() {
    const x = ones(2);
    group.allReduce(x).wait();
    deepStrictEqual(x.toFlatArray(), [2, 2]);
    await late();
  },

  async mismatch() {
    group.allReduce(ones(2)).wait();
    const text = /the ranks do not call the same \(rank 0: allReduce\(sum\) float32 \[2\]; rank 1: .*\[3\]\)/;
    await fails(group.allReduce(ones(isFirst ? 2 : 3)).done, [isFirst ? 1 : 0], text);
  },

  /** A call that never ends, and a process that does. */
  async exits() {
    const x = ones(2);
    group.allReduce(x).wait();
    deepStrictEqual(x.toFlatArray(), [2, 2]);
    if (!isFirst) return void (await sleep(2000));
    group.allReduce(x);
    console.log(`exits ${Date.now()}`);
    process.exit(7);
  },
};

await faults[fault!]!();
group.dispose();
console.log('all right');
