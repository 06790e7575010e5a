import type { Generator, GeneratorState } from '@roofline/tensor-core';
import type { GatheringRanks } from '../checkpoint/together.ts';
import type { Header } from './training-file.ts';

// Ranks draw other random numbers, as those of dropout, and go on with their own.

/** The states of all ranks' generators, in the order of the ranks. A collective. */
export function gatherGenerators(group: GatheringRanks, generator: Generator): Promise<GeneratorState[]> {
  return group.allGatherObject(generator.stateDict());
}

/**
 * Where a rank's generator goes on: as it was saved where there was such a rank. One that is new goes on from rank 0's place in the
 * sequence of a seed after all that were saved, so that it draws what no other does.
 */
export function generatorOfRank({ generator, generators }: Header, rank: number): GeneratorState {
  const saved = (generators ?? [generator]) as readonly GeneratorState[];
  const own = saved[rank];
  if (own) return own;
  const last = Math.max(...saved.map(({ seed }) => seed));
  return { seed: seedAfter(last, rank - saved.length), offset: saved[0]!.offset };
}

/** The seed `distance` + 1 after another; after the greatest comes 0. */
function seedAfter(seed: number, distance: number): number {
  const room = Number.MAX_SAFE_INTEGER - seed;
  return distance < room ? seed + distance + 1 : distance - room;
}
