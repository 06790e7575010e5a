import { deepStrictEqual, match, ok, rejects, throws } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Tensor, tensor, toDevice, zeros } from '@roofline/tensor-core';
import { CollectiveError, type ProcessGroup, StoreClient, initProcessGroup } from '../../src/index.ts';
import { openEmulatedGpu } from '../support/emulated-gpu.ts';

// What can go wrong with NCCL: the faults that the arguments name.

const { device, nccl } = openEmulatedGpu();
const isFirst = process.env['RANK'] === '0';
const onGpu = (values: readonly number[]): Tensor => toDevice(tensor([...values]), device);

/** Ranks wait for each other before they join with it; joining starts a thread, which takes its time on a busy machine. */
const shortMs = 15_000;

async function meet(): Promise<void> {
  const [host = '', port] = process.env['ROOFLINE_STORE']!.split(':');
  const store = await StoreClient.connect({ host, port: Number(port), token: 'test' });
  await store.set(`here/${process.env['RANK']}`, '');
  await store.wait(['here/0', 'here/1']);
  store.close();
}

async function join(timeoutMs = 60_000, checkCalls = false): Promise<ProcessGroup> {
  await meet();
  return await initProcessGroup({ backend: 'nccl', device, timeoutMs, checkCalls });
}

/** Waits until a communicator has been aborted; a rank whose peer failed otherwise would wait for ever. */
async function abortion(): Promise<void> {
  for (const start = Date.now(); nccl.aborted() === 0; await sleep(20))
    ok(Date.now() - start < 120_000, 'no communicator has been aborted in two minutes');
}

/** Expects a CollectiveError of these peers, and later calls to fail with the same words. */
async function fails(
  group: ProcessGroup,
  work: Promise<void>,
  peers: readonly number[],
  text: RegExp,
): Promise<void> {
  let failure: unknown = null;
  await rejects(work, (error) => Boolean((failure = error)));
  ok(failure instanceof CollectiveError, String(failure));
  match(failure.message, text);
  deepStrictEqual([failure.op, failure.rank, failure.peers], ['allReduce', group.rank, peers]);
  throws(() => group.allReduce(onGpu([1])).wait(), { name: 'CollectiveError', message: failure.message });
  deepStrictEqual(nccl.aborted(), 1);
}

/** Rank 1 does not call any more; its own watchdog reports it. */
async function lateIn(group: ProcessGroup): Promise<void> {
  if (isFirst) {
    const text = /rank 1 did not come in time \(timed out after 15000 ms/;
    await fails(group, group.allReduce(onGpu([1])).done, [1], text);
    return;
  }
  // Hears that the others have ended.
  await abortion();
  throws(() => group.allReduce(onGpu([1])).wait(), /the others have given up waiting for this rank/);
}

const faults: Record<string, () => Promise<void>> = {
  /** Rank 1 has joined and never calls: the other is blocked inside the library, which connects them, and is freed. */
  async late() {
    await lateIn(await join(isFirst ? shortMs : 60_000));
  },

  /** The same once they are connected: calls return, and the stream waits. */
  async lateLater() {
    const group = await join(isFirst ? shortMs : 60_000);
    group.allReduce(onGpu([1])).wait();
    await lateIn(group);
  },

  /** The thread that calls is blocked by its stream when the other rank dies; those left go on. */
  async killed() {
    const group = await join(shortMs);
    group.allReduce(onGpu([1])).wait();
    device.synchronize();
    if (!isFirst) process.kill(process.pid, 'SIGKILL');
    const work = group.allReduce(onGpu([1]));
    device.synchronize();
    await fails(group, work.done, [1], /rank 1 is gone.*\(timed out after 15000 ms/);
    const alone = await group.subGroup([0]);
    const x = onGpu([5, 6]);
    alone.allReduce(x).wait();
    deepStrictEqual(x.toFlatArray(), [5, 6]);
    alone.dispose();
    group.dispose();
  },

  async mismatch() {
    const group = await join(60_000, true);
    group.allReduce(onGpu([1, 2])).wait();
    const x = onGpu(isFirst ? [1, 2] : [1, 2, 3]);
    const text = /the ranks do not call the same \(rank 0: allReduce\(sum\) float32 \[2\]; rank 1: .*\[3\]\)/;
    await fails(group, group.allReduce(x).done, [isFirst ? 1 : 0], text);
  },

  /** What NCCL notices by itself on one rank is reported to all. */
  async asynchronous() {
    const group = await join();
    group.allReduce(onGpu([1])).wait();
    device.synchronize();
    group.barrier().wait();
    if (isFirst) nccl.asyncError(6);
    await abortion();
    throws(() => group.allReduce(onGpu([1])).wait(), /remote process exited: the stub's last error/);
  },

  async refused() {
    const group = await join();
    group.barrier().wait();
    if (isFirst) {
      nccl.failNext(5);
      await fails(group, group.allReduce(onGpu([1])).done, [], /invalid usage: the stub's last error/);
    } else {
      await abortion();
      throws(() => group.allReduce(onGpu([1])).wait(), /rank 0 of the group: invalid usage/);
    }
  },

  /** Results that were handed out turn out to be wrong, and nothing asks. */
  async unheard() {
    const group = await join(isFirst ? shortMs : 60_000);
    group.allReduce(onGpu([1])).wait();
    if (isFirst) group.allReduce(onGpu([1])).wait();
    await abortion();
  },

  async exits() {
    const group = await join();
    group.allReduce(onGpu([1]));
    console.log(`exits ${Date.now()}`);
    process.exit(7);
  },

  async unconnected() {
    if (!isFirst) process.env['STUB_NCCL_MUTE'] = '1';
    await rejects(join(shortMs), (error) => {
      ok(error instanceof CollectiveError);
      match(error.message, /NCCL could not connect rank [01], on cuda:0.*timed out after 15000 ms/);
      return true;
    });
    deepStrictEqual(nccl.aborted(), 1);
  },

  async absent() {
    if (!isFirst) return;
    await rejects(initProcessGroup({ backend: 'nccl', device, timeoutMs: 500 }), {
      name: 'CollectiveError',
      message: /rank 1 did not come within 500 ms/,
    });
  },

  async disposed() {
    const group = await join();
    const work = group.allReduce(onGpu([1]));
    group.dispose();
    await rejects(work.done, /the group was disposed/);
    throws(() => group.allReduce(onGpu([1])), { name: 'DisposedError' });
    group.dispose();
  },

  /** Memory of another stream than the one that waits: it must not go to others before the call has run. */
  async memory() {
    const group = await join();
    const side = device.createStream();
    for (let round = 0; round < 20; round++) {
      const output = toDevice(zeros([4]), device);
      const x = device.onStream(side, () => onGpu([1, 2, 3, round]));
      device.stream.waitFor(side.recordEvent());
      group.allReduce(x, { output }).wait();
      x.dispose();
      side.synchronize();
      deepStrictEqual(output.toFlatArray(), [2, 4, 6, 2 * round]);
    }
    group.barrier().wait();
  },

  async coalesce() {
    const group = await join();
    const x = onGpu([1]);
    const { references } = x.storage;
    const before = nccl.log();
    throws(
      () =>
        group.coalesce(() => {
          group.allReduce(x);
          throw new RangeError('half-way');
        }),
      /half-way/,
    );
    throws(() => group.coalesce(() => group.allReduce(x).wait()), /begins when coalesce\(\) returns/);
    deepStrictEqual(
      [nccl.log(), x.storage.references],
      [before, references],
      'nothing was sent, nothing is held',
    );
    group.coalesce(() => {}).wait();
    throws(() => group.allReduce(tensor([1])), /nccl takes tensors of cuda, not of cpu/);
    group.barrier().wait();
  },
};

for (const fault of process.argv.slice(2)) await faults[fault]!();
deepStrictEqual(nccl.faults(), '');
console.log('all right');
