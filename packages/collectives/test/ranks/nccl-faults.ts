import { deepStrictEqual, match, ok, rejects, throws } from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Tensor, add, compile, mul, tensor, toDevice, zeros } from '@roofline/tensor-core';
import {
  CollectiveError,
  type ProcessGroup,
  StoreClient,
  allReduce,
  initProcessGroup,
} from '@roofline/collectives';
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

/** A compiled step, which has been replayed on all ranks, and whose calls are all done. */
function replayed(group: ProcessGroup, name = 'step'): (x: Tensor) => Tensor {
  const step = { [name]: (x: Tensor) => add(allReduce(mul(x, 2), group), mul(x, 3)) }[name]!;
  const compiled = compile(step);
  for (let i = 0; i < 3; i++) deepStrictEqual(compiled(onGpu([i])).toFlatArray(), [7 * i]);
  ok(compiled.cache.hits === 2);
  return compiled;
}

/** Expects the next replay to say what has gone wrong, each time, and that no CUDA graph keeps NCCL from its end. */
function replayFails(
  group: ProcessGroup,
  step: (x: Tensor) => Tensor,
  peers: readonly number[] | null,
  text: RegExp,
): void {
  for (let i = 0; i < 2; i++)
    throws(
      () => step(onGpu([1])),
      (error: unknown) => {
        ok(error instanceof CollectiveError, String(error));
        match(error.message, text);
        deepStrictEqual([error.rank, peers && error.peers], [group.rank, peers]);
        return true;
      },
    );
  deepStrictEqual(nccl.aborted(), 1);
}

/** The error of a replay whose first captured call NCCL refuses. */
function refusedCapture(step: (x: Tensor) => Tensor): CollectiveError {
  nccl.failNextCaptured(5);
  try {
    step(onGpu([1]));
  } catch (error) {
    if (error instanceof CollectiveError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

const faults: Record<string, () => Promise<void>> = {
  /** Rank 1 replays no more: the other's graph never ends, until its watchdog ends it. */
  async 'compiled, late'() {
    const group = await join(isFirst ? shortMs : 60_000);
    const step = replayed(group);
    if (isFirst) {
      step(onGpu([1]));
      device.synchronize();
      replayFails(
        group,
        step,
        [1],
        /^step: failed on rank 0: rank 1 did not come in time \(timed out after 15000 ms/,
      );
      throws(() => group.allReduce(onGpu([1])).wait(), CollectiveError);
      return;
    }
    await abortion();
    replayFails(group, step, [], /the others have given up waiting for this rank/);
  },

  /** The thread that replays is blocked by its stream when the other rank dies; those left go on, with programs of their own. */
  async 'compiled, killed'() {
    const group = await join(shortMs);
    const step = replayed(group);
    if (!isFirst) process.kill(process.pid, 'SIGKILL');
    step(onGpu([1])).toFlatArray();
    replayFails(group, step, [1], /rank 1 is gone.*\(timed out after 15000 ms/);
    const alone = await group.subGroup([0]);
    const left = compile((x: Tensor) => allReduce(mul(x, 2), alone));
    for (let i = 0; i < 3; i++) deepStrictEqual(left(onGpu([i])).toFlatArray(), [2 * i]);
    alone.dispose();
    group.dispose();
  },

  /** Ranks that replay other programs than each other. */
  async 'compiled, mismatch'() {
    const group = await join(60_000, true);
    const [one, other] = [replayed(group, 'one'), replayed(group, 'other')];
    (isFirst ? one : other)(onGpu([1]));
    await abortion();
    const text =
      /the ranks do not call the same \(rank 0: replay of one\(allReduce\(sum\) float32 \[1\]\); rank 1: replay of other\(/;
    replayFails(group, one, [isFirst ? 1 : 0], text);
  },

  /** What NCCL notices by itself on one rank ends the programs of all. */
  async 'compiled, asynchronous'() {
    const group = await join();
    const step = replayed(group);
    group.barrier().wait();
    if (isFirst) nccl.asyncError(6);
    await abortion();
    replayFails(group, step, [], /remote process exited: the stub's last error/);
  },

  /** The library refuses a call as it is captured. */
  async 'compiled, refused'() {
    const group = await join();
    const step = compile((x: Tensor) => allReduce(x, group));
    step(onGpu([1]));
    group.barrier().wait();
    const before = compile((x: Tensor) => allReduce(x, group));
    if (isFirst) {
      // The capture of the second call, after what ranks compare.
      const error = refusedCapture(step);
      match(error.message, /invalid usage: the stub's last error/);
    } else {
      try {
        step(onGpu([1]));
      } catch (error) {
        // Rank 0 may have failed already.
        if (!(error instanceof CollectiveError)) throw error;
      }
      await abortion();
      // Whether rank 0 answers before it ends its communicator is up to the two.
      replayFails(group, step, null, /rank 0 of the group: invalid usage/);
    }
    throws(() => before(onGpu([1])).toFlatArray(), CollectiveError);
  },

  /** Results of a replay turn out to be wrong, and nothing asks. */
  async 'compiled, unheard'() {
    const group = await join(isFirst ? shortMs : 60_000);
    const step = replayed(group);
    if (isFirst) step(onGpu([1]));
    await abortion();
  },

  /** Graphs go before the communicator, which could not end otherwise. */
  async 'compiled, disposed'() {
    const group = await join();
    const step = replayed(group);
    const result = step(onGpu([1]));
    group.dispose();
    deepStrictEqual(result.toFlatArray(), [7]);
    throws(() => step(onGpu([1])), { name: 'DisposedError' });
  },

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
