import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { setTimeout as sleep } from 'node:timers/promises';
import { CollectiveError } from '../errors.ts';
import { type Rendezvous, awaitMembers } from '../group/await-members.ts';
import type { Store } from '../store/store.ts';
import type { StoreClientOptions } from '../store/store-client.ts';
import { Communicator, createUniqueId } from './communicator.ts';
import { NcclBackend } from './nccl-backend.ts';
import { Alarms } from './watchdog/alarms.ts';
import { Watchdog } from './watchdog/watchdog.ts';

export interface ConnectNcclOptions {
  /** The rank in the group, and the ranks of the world that make it up. */
  readonly rank: number;
  readonly ranks: readonly number[];
  readonly store: Store;
  /** Where the watchdog finds the same store. */
  readonly storePlace: StoreClientOptions;
  /** Begins the keys of this group; no group before may have had it. */
  readonly prefix: string;
  readonly device: CudaDevice;
  readonly timeoutMs: number;
  /** The call by which this rank joins. */
  readonly op: Rendezvous['op'];
  readonly checkCalls: boolean;
}

/**
 * Connects the ranks of a group, each with its GPU. Throws a CollectiveError that names the ranks that did not come, and
 * a LibraryNotFoundError without NCCL.
 */
export async function connectNccl(options: ConnectNcclOptions): Promise<NcclBackend> {
  const { rank, ranks, store, storePlace, prefix, device, timeoutMs, checkCalls } = options;
  const size = ranks.length;
  const idKey = `${prefix}/id`;
  await awaitMembers(options);
  if (rank === 0) await store.set(idKey, explained(options, createUniqueId));
  const uniqueId = await store.get(idKey, { timeoutMs });
  device.makeCurrent();
  const communicator = explained(options, () => new Communicator({ rank, size, uniqueId, timeoutMs }));
  try {
    await communicator.connected();
  } catch (error) {
    throw notConnected(options, error as Error);
  }
  const watchdog = new Watchdog({
    communicator: communicator.handle,
    guard: communicator.guard,
    state: communicator.state.buffer,
    deviceIndex: device.index,
    ...{ rank, ranks, timeoutMs, prefix },
    store: storePlace,
  });
  try {
    // A rank whose watchdog has not begun would look as if it were gone.
    const deadline = performance.now() + timeoutMs;
    while (!communicator.state.isWatched && performance.now() < deadline) await sleep(5);
    await awaitMembers({ ...options, prefix: `${prefix}/watched` });
  } catch (error) {
    communicator.abort();
    throw error;
  }
  const alarms = new Alarms(store, prefix, rank, size);
  return new NcclBackend({ device, communicator, watchdog, alarms, rank, size, checkCalls });
}

function explained<T>(options: ConnectNcclOptions, connect: () => T): T {
  try {
    return connect();
  } catch (error) {
    throw notConnected(options, error as Error);
  }
}

function notConnected({ rank, ranks, device, op }: ConnectNcclOptions, cause: Error): CollectiveError {
  return new CollectiveError(
    `${op}: NCCL could not connect rank ${ranks[rank]}, on ${device.label}, to the others: ${cause.message}. ` +
      'Has each rank a GPU of its own, and is the network interface right (NCCL_SOCKET_IFNAME)? NCCL_DEBUG=INFO says more.',
    { op, rank: ranks[rank]!, peers: [] },
    { cause },
  );
}
