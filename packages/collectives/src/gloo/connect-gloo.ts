import { CollectiveError, StoreError } from '../errors.ts';
import type { Outcome } from '../group/backend.ts';
import type { Store } from '../store/store.ts';
import { namesOf } from '../group/describe-call.ts';
import { GlooBackend } from './gloo-backend.ts';

export interface ConnectGlooOptions {
  /** The rank in the group, and the ranks of the world that make it up. */
  readonly rank: number;
  readonly ranks: readonly number[];
  readonly store: Store;
  /** Begins the keys of this group; no group before may have had it. */
  readonly prefix: string;
  readonly host: string;
  readonly interfaceName: string;
  readonly timeoutMs: number;
}

/**
 * Connects the ranks of a group with each other. Throws a CollectiveError that names the ranks that did not come, and a
 * LibraryNotFoundError without Gloo.
 */
export async function connectGloo(options: ConnectGlooOptions): Promise<GlooBackend> {
  const { rank, ranks, store, prefix, timeoutMs } = options;
  const backend = new GlooBackend({ ...options, size: ranks.length });
  try {
    const keyOf = (member: number) => `${prefix}/address/${member}`;
    await store.set(keyOf(rank), JSON.stringify(backend.addresses(rank)));
    await allHere(options, keyOf);
    const addresses = await Promise.all(
      ranks.map(async (_, peer) => {
        if (peer === rank) return '';
        const texts = JSON.parse(
          new TextDecoder().decode(await store.get(keyOf(peer), { timeoutMs })),
        ) as string[];
        return texts[rank]!;
      }),
    );
    const outcome = await new Promise<Outcome>((resolve) => backend.connect(addresses, resolve));
    if (outcome.status === 'failed') throw notConnected(options, outcome);
    return backend;
  } catch (error) {
    backend.close();
    throw error;
  }
}

async function allHere(
  { rank, ranks, store, timeoutMs }: ConnectGlooOptions,
  keyOf: (member: number) => string,
): Promise<void> {
  try {
    await store.wait(
      ranks.map((_, member) => keyOf(member)),
      { timeoutMs },
    );
  } catch (cause) {
    if (!(cause instanceof StoreError) || cause.missingKeys.length === 0) throw cause;
    const { missingKeys } = cause;
    const late = ranks.filter((_, member) => missingKeys.includes(keyOf(member)));
    throw new CollectiveError(
      `initProcessGroup: ${namesOf(late)} did not come within ${timeoutMs} ms (rank ${ranks[rank]} of ` +
        `${ranks.length} waited); has it started, with the same WORLD_SIZE and store?`,
      { op: 'initProcessGroup', rank: ranks[rank]!, peers: late },
      { cause },
    );
  }
}

function notConnected(
  { rank, ranks }: ConnectGlooOptions,
  { losses, message }: Extract<Outcome, { status: 'failed' }>,
): CollectiveError {
  const peers = [...losses.keys()].map((member) => ranks[member]!);
  const who = peers.length > 0 ? namesOf(peers) : 'the other ranks';
  return new CollectiveError(
    `initProcessGroup: rank ${ranks[rank]} could not connect to ${who}: ${message}. Gloo listens at any free port: is ` +
      'one blocked between the machines, or the wrong network interface taken (give { host } or GLOO_SOCKET_IFNAME)?',
    { op: 'initProcessGroup', rank: ranks[rank]!, peers },
  );
}
