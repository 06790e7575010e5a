import { type Device, RooflineError, type Tensor, checkOptions } from '@roofline/tensor-core';
import { CollectiveError } from '../errors.ts';
import { checkRank } from '../group/check-call.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { rankNames } from '../ranks/rank-names.ts';
import { gatherState, scatterState } from './exchange-states.ts';
import { type ShardableState, checkShardable, selectState } from './shard-states.ts';

/** Where a whole state is, or is to be. */
export interface StateOptions {
  /** The one rank that has it. Default: all. */
  readonly root?: number;
}

/** Where the parts of an optimizer's state are. */
export interface StateSplit {
  readonly group: ProcessGroup;
  /** Of each parameter, the rank of the group that holds its state. */
  readonly owners: readonly number[];
  /** The numbers of this rank's, in the order of its optimizer. */
  readonly own: readonly number[];
  readonly device: Device;
}

/** What an optimizer of a rank's share gives and takes: the state of its own parameters, counted from 0. */
interface StateHolder {
  stateDict(): ShardableState;
  loadStateDict(state: ShardableState): void;
  dispose(): void;
}

const loading = 'ShardedOptimizer.loadStateDict';

/** The root that the options of `op` name; null for all ranks. Throws what says that there is no such rank or option. */
export function rootOf(op: string, options: StateOptions, { size }: ProcessGroup): number | null {
  checkOptions(op, options, ['root']);
  const { root } = options;
  if (root === undefined) return null;
  checkRank(op, 'the root', root, size);
  return root;
}

/**
 * The state of all parameters, in copies, from each rank's `own` optimizer, which is null where a rank has no parameters: on the
 * `root`, or on all for null; null elsewhere. A collective.
 */
export async function saveState(
  split: StateSplit,
  own: StateHolder | null,
  root: number | null,
): Promise<ShardableState | null> {
  const { tensors, metadata } = own?.stateDict() ?? { tensors: {}, metadata: {} };
  try {
    const part = { numbers: split.own, tensors, metadata };
    return await gatherState(split.group, part, root, split.device);
  } finally {
    disposeAll(tensors);
  }
}

/**
 * A new optimizer of this rank's share, from `makeOwn`, that continues from a whole state, which all ranks have, or the `root`
 * alone. A collective. Throws on all ranks where one gives something else, or it is not of these parameters.
 */
export async function loadState<O extends StateHolder>(
  split: StateSplit,
  makeOwn: () => O | null,
  state: ShardableState | null,
  root: number | null,
): Promise<O | null> {
  const { group, owners, device } = split;
  await refuseTogether(
    group,
    thrownBy(() => checkGiven(group, state, root)),
  );
  const own = root === null ? state! : await scatterState(group, state, root, owners, device);
  const loaded = makeOwn();
  const failure = thrownBy(() => {
    const part = selectState(own, split.own, owners.length);
    loaded?.loadStateDict(part);
  });
  if (root !== null) disposeAll(own.tensors);
  try {
    await refuseTogether(group, failure);
  } catch (error) {
    loaded?.dispose();
    throw error;
  }
  return loaded;
}

function checkGiven({ rank, ranks }: ProcessGroup, state: ShardableState | null, root: number | null): void {
  const isMine = root === null || root === rank;
  if (isMine !== (state !== null))
    throw new RooflineError(
      'ARGUMENT',
      `${loading}: rank ${ranks[rank]} must give ${isMine ? 'the state, not null' : `null: rank ${ranks[root]} has the state`}.`,
    );
  if (state !== null) checkShardable(loading, state);
}

/** Throws on all ranks where there is a failure on one: its own where it has one, else a CollectiveError. A collective. */
async function refuseTogether(group: ProcessGroup, failure: Error | null): Promise<void> {
  const failures = await group.allGatherObject(failure?.message ?? null);
  const { rank, ranks } = group;
  const peers = ranks.filter((_, member) => failures[member] !== null);
  if (peers.length === 0) return;
  if (failure) throw failure;
  throw new CollectiveError(
    `${loading}: the state does not fit on ${rankNames(peers)}: ${failures.find((text) => text !== null)}`,
    { op: loading, rank: ranks[rank]!, peers },
  );
}

function disposeAll(tensors: Readonly<Record<string, Tensor>>): void {
  for (const tensor of Object.values(tensors)) tensor.dispose();
}

function thrownBy(run: () => void): Error | null {
  try {
    run();
    return null;
  } catch (error) {
    return error as Error;
  }
}
