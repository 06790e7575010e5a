import { RooflineError } from '@roofline/tensor-core';

/** Ranks that tell each other values: a process group of @roofline/collectives. */
export interface GatheringRanks {
  readonly rank: number;
  readonly ranks: readonly number[];
  allGatherObject<T>(value: T): Promise<T[]>;
}

/** Runs `act` on each rank, and throws on all where it throws on one. A collective. */
export async function together(group: GatheringRanks, owner: string, act: () => void): Promise<void> {
  let failure: Error | null = null;
  try {
    act();
  } catch (error) {
    failure = error as Error;
  }
  const failures = await group.allGatherObject(failure?.message ?? null);
  if (failure) throw failure;
  const rank = failures.findIndex((message) => message !== null);
  if (rank >= 0)
    throw new RooflineError('CHECKPOINT', `${owner}: failed on rank ${group.ranks[rank]}: ${failures[rank]}`);
}
