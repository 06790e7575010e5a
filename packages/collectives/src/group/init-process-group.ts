import { RooflineError, checkNumber, checkOptions, checkText, describeValue } from '@roofline/tensor-core';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { connectGloo } from '../gloo/connect-gloo.ts';
import { glooLibrary } from '../gloo/gloo-library.ts';
import {
  type RankEnvironment,
  type RankOptions,
  rankEnvironment,
  rankOptionNames,
} from '../ranks/rank-environment.ts';
import { StoreClient } from '../store/store-client.ts';
import { StoreServer } from '../store/store-server.ts';
import type { Members } from './describe-call.ts';
import { ProcessGroup } from './process-group.ts';

export interface InitProcessGroupOptions extends RankOptions {
  /** 'gloo' is for tensors of the CPU. */
  readonly backend: 'gloo';
  /** How long to wait for other ranks, here and in each collective. Default 30,000. */
  readonly timeoutMs?: number;
  /**
   * This machine's address for the other ranks, as Gloo listens. Default: that of the interface GLOO_SOCKET_IFNAME, or
   * else the one by which the store is reached.
   */
  readonly host?: string;
}

const optionNames: readonly (keyof InitProcessGroupOptions)[] = [
  'backend',
  'timeoutMs',
  'host',
  ...rankOptionNames,
];
const defaultTimeoutMs = 30_000;

/** What a rank keeps of the rendezvous, for its groups. */
interface Rendezvous {
  readonly store: StoreClient;
  readonly host: string;
  readonly interfaceName: string;
  readonly timeoutMs: number;
  /** How many groups of the same ranks were made: each has keys of its own. */
  readonly generations: Map<string, number>;
}

/**
 * Joins the group of all ranks, once all have called it; see `rankEnvironment` for who they are. Throws a
 * LibraryNotFoundError without Gloo, a RooflineError (code RANKS) for an environment that says too little, a StoreError
 * where the store cannot be reached, and a CollectiveError that names the ranks that do not come in time.
 */
export async function initProcessGroup(options: InitProcessGroupOptions): Promise<ProcessGroup> {
  checkInitOptions(options);
  const { backend: _, timeoutMs = defaultTimeoutMs, host, ...rankOptions } = options;
  const environment = rankEnvironment(rankOptions);
  glooLibrary();
  const server = environment.hostsStore && environment.rank === 0 ? await hostStore(environment) : null;
  let store: StoreClient | null = null;
  try {
    store = await StoreClient.connect({
      host: environment.storeHost,
      port: environment.storePort,
      token: environment.token,
      timeoutMs,
    });
    const rendezvous = { store, ...listeningPlace(host, store), timeoutMs, generations: new Map() };
    const members = {
      ranks: Array.from({ length: environment.worldSize }, (_, rank) => rank),
      rank: environment.rank,
    };
    const connection = store;
    return await connectMembers(rendezvous, members, () => {
      connection.close();
      server?.close();
    });
  } catch (error) {
    store?.close();
    server?.close();
    throw error;
  }
}

async function connectMembers(
  rendezvous: Rendezvous,
  members: Members,
  onDispose: () => void,
): Promise<ProcessGroup> {
  const { store, host, interfaceName, timeoutMs, generations } = rendezvous;
  const name = members.ranks.join(',');
  const generation = (generations.get(name) ?? 0) + 1;
  generations.set(name, generation);
  const prefix = `group/${name}/${generation}`;
  const backend = await connectGloo({ ...members, store, prefix, host, interfaceName, timeoutMs });
  return new ProcessGroup(
    members,
    backend,
    (fewer) => connectMembers(rendezvous, fewer, () => {}),
    onDispose,
  );
}

function listeningPlace(
  host: string | undefined,
  store: StoreClient,
): Pick<Rendezvous, 'host' | 'interfaceName'> {
  if (host !== undefined) return { host, interfaceName: '' };
  const interfaceName = process.env.GLOO_SOCKET_IFNAME ?? '';
  // IPv4 addresses come mapped where the socket is of IPv6.
  const address = store.localAddress.replace(/^::ffff:/, '');
  return interfaceName === '' ? { host: address, interfaceName } : { host: '', interfaceName };
}

/** Rank 0's: where others than this machine can reach it, a token is needed. */
async function hostStore({ storeHost, storePort, token }: RankEnvironment): Promise<StoreServer> {
  const host = isIP(storeHost) > 0 ? storeHost : await addressOfHost(storeHost);
  if (token === '' && !isLoopback(host))
    throw new RooflineError(
      'RANKS',
      `initProcessGroup: the store at ${storeHost} can be reached by others, and there is no token; set ` +
        'ROOFLINE_STORE_TOKEN to one secret on all ranks, or give { token }.',
    );
  return await StoreServer.listen({ host, port: storePort, token });
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

function checkInitOptions(options: InitProcessGroupOptions): void {
  const owner = 'initProcessGroup';
  checkOptions(owner, options, optionNames);
  if (options.backend !== 'gloo')
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: there is no backend ${describeValue(options.backend)}; take 'gloo'.`,
    );
  if (options.host !== undefined) checkText(owner, 'the host', options.host);
  if (options.timeoutMs !== undefined) {
    const isDuration = (value: number) => Number.isInteger(value) && value > 0 && value < 2 ** 31;
    checkNumber(owner, 'timeoutMs', options.timeoutMs, 'a whole number of milliseconds above 0', isDuration);
  }
}
