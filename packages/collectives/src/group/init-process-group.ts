import {
  type Device,
  type DeviceSpec,
  RooflineError,
  checkDevice,
  checkFlag,
  checkNumber,
  checkOptions,
  checkText,
  cudaDeviceCount,
  describeValue,
  device as openDevice,
} from '@roofline/tensor-core';
import { type CudaDevice, cudaDevice } from '@roofline/tensor-core/kernel-api';
import { connectGloo } from '../gloo/connect-gloo.ts';
import { glooLibrary } from '../gloo/gloo-library.ts';
import { connectNccl } from '../nccl/connect-nccl.ts';
import { ncclLibrary } from '../nccl/nccl-library.ts';
import {
  type RankEnvironment,
  type RankOptions,
  rankEnvironment,
  rankOptionNames,
} from '../ranks/rank-environment.ts';
import type { StoreClient } from '../store/store-client.ts';
import { agreeOnMembers } from './agree-on-members.ts';
import { AskBoard } from './ask-board.ts';
import type { Rendezvous } from './await-members.ts';
import type { Backend } from './backend.ts';
import type { Members } from './describe-call.ts';
import { ProcessGroup } from './process-group.ts';
import { groupPrefix, openWorldStore } from './world-store.ts';

export interface InitProcessGroupOptions extends RankOptions {
  /** 'gloo' is for tensors of the CPU, 'nccl' for those of a GPU, one for each rank. */
  readonly backend: 'gloo' | 'nccl';
  /** How long to wait for other ranks, here and in each collective. Default 30,000. */
  readonly timeoutMs?: number;
  /**
   * This machine's address for the other ranks, as Gloo listens. Default: that of the interface GLOO_SOCKET_IFNAME, or
   * else the one by which the store is reached.
   */
  readonly host?: string;
  /** Of NCCL: this rank's GPU. Default: that of its local rank, or the only one that it sees. */
  readonly device?: DeviceSpec | Device;
  /**
   * Of NCCL: compares calls with those of the other ranks, through the store. One that does not fit then ends the group
   * with an error that says who called what; without, NCCL waits until `timeoutMs`, or mixes up the data. Default false.
   * Gloo always compares, before data moves.
   */
  readonly checkCalls?: boolean;
}

const optionNames: readonly (keyof InitProcessGroupOptions)[] = [
  'backend',
  'timeoutMs',
  'host',
  'device',
  'checkCalls',
  ...rankOptionNames,
];
const defaultTimeoutMs = 30_000;

/** Connects the ranks of one group; the keys that begin with `prefix` are its own. */
type Connect = (members: Members, keys: Pick<Rendezvous, 'prefix' | 'op'>) => Promise<Backend>;

/** The last join by the rank in the options: a rank makes several groups one after the other, in the order of its calls. */
const joining = new Map<number | undefined, Promise<unknown>>();

/**
 * Joins the group of all ranks, once all have called it; see `rankEnvironment` for who they are. Throws a
 * LibraryNotFoundError without Gloo or NCCL, a RooflineError (code RANKS) for an environment that says too little, a
 * StoreError where the store cannot be reached, and a CollectiveError that names the ranks that do not come in time.
 */
export async function initProcessGroup(options: InitProcessGroupOptions): Promise<ProcessGroup> {
  checkInitOptions(options);
  const { rank } = options;
  const joined = Promise.resolve(joining.get(rank)).then(() => joinAll(options));
  const ended = joined.catch(() => {});
  joining.set(rank, ended);
  return await joined;
}

async function joinAll(options: InitProcessGroupOptions): Promise<ProcessGroup> {
  const { backend, timeoutMs = defaultTimeoutMs, host, device, checkCalls = false, ...rankOptions } = options;
  const environment = rankEnvironment(rankOptions);
  if (backend === 'gloo') glooLibrary();
  else ncclLibrary();
  const gpu = backend === 'nccl' ? ownGpu(device, environment) : null;
  const store = await openWorldStore(environment, timeoutMs);
  try {
    const { client, place: storePlace } = store;
    const common = { store: client, timeoutMs };
    const connect: Connect = gpu
      ? (members, keys) =>
          connectNccl({ ...members, ...common, ...keys, storePlace, device: gpu, checkCalls })
      : (members, keys) => connectGloo({ ...members, ...common, ...keys, ...listeningPlace(host, client) });
    const { rank, worldSize } = environment;
    const members = { ranks: Array.from({ length: worldSize }, (_, member) => member), rank };
    const connected = await connect(members, {
      op: 'initProcessGroup',
      prefix: groupPrefix(store.prefix),
    });
    store.noteJoined();
    const world = { connect, timeoutMs, board: new AskBoard(client, store.prefix, rank) };
    return groupOn(connected, world, members, () => store.close());
  } catch (error) {
    store.close();
    throw error;
  }
}

/** What a group of all ranks and its subgroups have in common. */
interface World {
  readonly connect: Connect;
  readonly timeoutMs: number;
  readonly board: AskBoard;
}

function groupOn(backend: Backend, world: World, members: Members, onDispose: () => void): ProcessGroup {
  return new ProcessGroup(members, backend, (fewer) => subGroupOf(world, fewer), onDispose);
}

async function subGroupOf(world: World, members: Members): Promise<ProcessGroup> {
  const { connect, timeoutMs, board } = world;
  const prefix = await agreeOnMembers(board, members.ranks, timeoutMs);
  return groupOn(await connect(members, { op: 'subGroup', prefix }), world, members, () => {});
}

/** The GPU that was asked for; else that of the local rank, or the only one that a launcher shows to this rank. */
function ownGpu(asked: DeviceSpec | Device | undefined, { localRank }: RankEnvironment): CudaDevice {
  if (asked !== undefined) return cudaDevice(openDevice(asked));
  const count = cudaDeviceCount();
  if (count > 1 && localRank >= count)
    throw new RooflineError(
      'RANKS',
      `initProcessGroup: local rank ${localRank} has no GPU of its own: this process sees ${count}. Start fewer ranks ` +
        'on this machine, or give { device }.',
    );
  return cudaDevice(openDevice(`cuda:${count > 1 ? localRank : 0}`));
}

function listeningPlace(
  host: string | undefined,
  store: StoreClient,
): { readonly host: string; readonly interfaceName: string } {
  if (host !== undefined) return { host, interfaceName: '' };
  const interfaceName = process.env.GLOO_SOCKET_IFNAME ?? '';
  // IPv4 addresses come mapped where the socket is of IPv6.
  const address = store.localAddress.replace(/^::ffff:/, '');
  return interfaceName === '' ? { host: address, interfaceName } : { host: '', interfaceName };
}

function checkInitOptions(options: InitProcessGroupOptions): void {
  const owner = 'initProcessGroup';
  checkOptions(owner, options, optionNames);
  if (options.backend !== 'gloo' && options.backend !== 'nccl')
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: there is no backend ${describeValue(options.backend)}; take 'gloo' or 'nccl'.`,
    );
  if (options.device !== undefined) checkDevice(owner, options.device);
  if (options.checkCalls !== undefined) checkFlag(owner, 'checkCalls', options.checkCalls);
  if (options.host !== undefined) checkText(owner, 'the host', options.host);
  if (options.timeoutMs !== undefined) {
    const isDuration = (value: number) => Number.isInteger(value) && value > 0 && value < 2 ** 31;
    checkNumber(owner, 'timeoutMs', options.timeoutMs, 'a whole number of milliseconds above 0', isDuration);
  }
}
