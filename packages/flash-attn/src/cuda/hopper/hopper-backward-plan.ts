import { type HopperTile, evenBand, isForHopper } from './hopper-tile.ts';
import type { KernelProblem } from '../kernel-problem.ts';

/** A variant of kernels/hopper/flash_hopper_backward.cu, whose blocks have 128 keys. */
export interface HopperBackwardTile extends HopperTile {
  /** That kernels are compiled for: at least the problem's, which TMA fills up by zeros. */
  readonly headDimension: HopperHeadDimension;
  /** Of a tile. */
  readonly queries: number;
  /**
   * Tiles of gradQ on their way to be summed in the order of the keys, so that the same inputs give the same bits. 0: each
   * block adds its part when it has it.
   */
  readonly sumBuffers: 0 | 1 | 2;
}

/** Kernels of flash_hopper_backward.cu and flash_hopper_backward_rows.cu. */
export interface HopperBackwardPlan {
  readonly family: 'hopper';
  readonly backward: HopperBackwardTile;
  /** Heads of k whose tiles are taken together in the backward pass, so that the queries and gradients stay in L2. */
  readonly backwardBand: number;
}

export type HopperHeadDimension = 64 | 80 | 96 | 128;

const headDimensions: readonly HopperHeadDimension[] = [64, 80, 96, 128];
const elementBytes = 2;
// TMA reads rows of whole 16-byte pieces.
const columnStep = 8;
// The limit of a grid.
const mostHeads = 65535;

// Registers of a thread that calculates, and of one that does not: all that a multiprocessor has.
const registers = { consumerRegisters: 240, producerRegisters: 24 } as const;

const tiles: Readonly<Record<HopperHeadDimension, HopperBackwardTile>> = {
  64: { headDimension: 64, queries: 128, stages: 2, chunk: 64, sumBuffers: 0, ...registers },
  80: { headDimension: 80, queries: 128, stages: 2, chunk: 32, sumBuffers: 0, ...registers },
  96: { headDimension: 96, queries: 64, stages: 2, chunk: 16, sumBuffers: 0, ...registers },
  128: { headDimension: 128, queries: 64, stages: 2, chunk: 64, sumBuffers: 0, ...registers },
};

const orderedTiles: Readonly<Record<HopperHeadDimension, HopperBackwardTile>> = {
  64: { ...tiles[64], sumBuffers: 1 },
  // Next to parts of 32 columns there is no room for a tile of sums.
  80: { ...tiles[80], sumBuffers: 1, chunk: 16 },
  96: { ...tiles[96], sumBuffers: 1 },
  128: { ...tiles[128], sumBuffers: 2 },
};

// With so few keys it is faster to sum gradQ in order, because nothing is zeroed before or converted afterwards.
// Without a mask all blocks of a head end at once, and more of the waiting shows.
const fewCausalKeys = 1024;
const fewKeys = 128;

// What two tensors of the heads of a band take. Measured on an H200; it leaves room in the L2 for the rest.
const causalBandBytes: Readonly<Record<HopperHeadDimension, number>> = {
  64: 17e6,
  80: 21e6,
  96: 34e6,
  128: 34e6,
};
const fullBandBytes: Readonly<Record<HopperHeadDimension, number>> = {
  64: 34e6,
  80: 10e6,
  96: 34e6,
  128: 34e6,
};

// Blocks of few heads that sum in order wait for one another, because they are at the same queries.
const fewestOrderedHeads = 16;

/** The backward kernels' plan, or null for a problem that they do not take. */
export function planHopperBackward(problem: KernelProblem): HopperBackwardPlan | null {
  const { batch, heads, keyHeads, queries, keys, causal, headDimension, deterministic } = problem;
  if (!isForHopper(problem) || headDimension % columnStep !== 0 || batch * heads > mostHeads) return null;
  const padded = headDimensions.find((each) => each >= headDimension);
  if (!padded) return null;
  const isOrdered = deterministic || keys <= (causal ? fewCausalKeys : fewKeys);
  const headBytes = 2 * elementBytes * headDimension * (heads / keyHeads) * queries;
  const inBudget = Math.floor((causal ? causalBandBytes : fullBandBytes)[padded] / headBytes);
  return {
    family: 'hopper',
    backward: (isOrdered ? orderedTiles : tiles)[padded],
    backwardBand: evenBand(batch * keyHeads, isOrdered ? Math.max(inBudget, fewestOrderedHeads) : inBudget),
  };
}
