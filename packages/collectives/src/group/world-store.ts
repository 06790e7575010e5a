import { RooflineError } from '@roofline/tensor-core';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError } from '../errors.ts';
import type { RankEnvironment } from '../ranks/rank-environment.ts';
import { HostedStore } from '../store/hosted-store.ts';
import { StoreClient, type StoreClientOptions } from '../store/store-client.ts';
import { memberKey } from './await-members.ts';

/** The store by which all ranks meet, as one of them is connected to it. */
export interface WorldStore {
  readonly client: StoreClient;
  /** Where other threads find it. */
  readonly place: StoreClientOptions;
  /** Begins the keys of this group of all ranks and of its subgroups; no such group before has had it. */
  readonly prefix: string;
  /** To be called once all ranks have come: the next group of all ranks by this store gets another prefix. */
  noteJoined(): void;
  close(): void;
}

/** How often this process has joined the group of all ranks by a store, which may keep the keys of the earlier ones. */
const worldsJoined = new Map<string, number>();

const retryMs = 50;

/** Connects to the store, which rank 0 hosts where no launcher does. Throws a StoreError, and a RooflineError (code RANKS). */
export async function openWorldStore(environment: RankEnvironment, timeoutMs: number): Promise<WorldStore> {
  const { rank, storeHost: host, storePort: port, token, hostsStore } = environment;
  const server = hostsStore && rank === 0 ? await hostStore(environment) : null;
  const place = { host, port, token, timeoutMs };
  const address = `${host}:${port}`;
  const earlier = worldsJoined.get(address) ?? 0;
  const mayMeetEarlier = hostsStore && rank > 0 && earlier > 0;
  try {
    const client = mayMeetEarlier
      ? await connectToNext(place, memberKey(groupPrefix(prefixOf(earlier - 1)), rank))
      : await StoreClient.connect(place);
    return {
      ...{ client, place, prefix: prefixOf(earlier) },
      noteJoined: () => void worldsJoined.set(address, earlier + 1),
      close() {
        client.close();
        server?.close();
      },
    };
  } catch (error) {
    server?.close();
    throw error;
  }
}

function prefixOf(earlier: number): string {
  return `world/${earlier}`;
}

/** Begins the keys by which all ranks become a group. */
export function groupPrefix(worldPrefix: string): string {
  return `${worldPrefix}/group`;
}

/** A connection to the store that rank 0 hosts, once it is another than that of the group before, which holds `key`. */
async function connectToNext(place: Required<StoreClientOptions>, key: string): Promise<StoreClient> {
  const deadline = performance.now() + place.timeoutMs;
  for (;;) {
    const restMs = Math.max(1, deadline - performance.now());
    const store = await StoreClient.connect({ ...place, timeoutMs: restMs });
    try {
      await store.wait([key], { timeoutMs: 1 });
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (error.missingKeys.length > 0) return store;
      // It has just been ended.
    }
    store.close();
    if (performance.now() + retryMs > deadline)
      throw new StoreError(
        `initProcessGroup: rank 0 has not left the group before within ${place.timeoutMs} ms: the store at ` +
          `${place.host}:${place.port} is still that group's; dispose it on all ranks.`,
      );
    await sleep(retryMs);
  }
}

/** Rank 0's: where others than this machine can reach it, a token is needed. */
async function hostStore({ storeHost, storePort, token }: RankEnvironment): Promise<HostedStore> {
  const host = isIP(storeHost) > 0 ? storeHost : await addressOfHost(storeHost);
  if (token === '' && !isLoopback(host))
    throw new RooflineError(
      'RANKS',
      `initProcessGroup: the store at ${storeHost} can be reached by others, and there is no token; set ` +
        'ROOFLINE_STORE_TOKEN to one secret on all ranks, or give { token }.',
    );
  return await HostedStore.listen({ host, port: storePort, token });
}

async function addressOfHost(name: string): Promise<string> {
  try {
    return (await lookup(name)).address;
  } catch (cause) {
    throw new RooflineError(
      'RANKS',
      `initProcessGroup: the store's host "${name}" has no address; set MASTER_ADDR to one.`,
      { cause },
    );
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
