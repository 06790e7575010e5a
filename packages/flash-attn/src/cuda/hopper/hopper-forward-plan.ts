import { type HopperTile, evenBand, isForHopper } from './hopper-tile.ts';
import type { KernelProblem } from '../kernel-problem.ts';

const headDimensions = [16, 32, 64, 80, 96, 128, 192, 256] as const;
type HopperHeadDimension = (typeof headDimensions)[number];

/** A variant of kernels/hopper/flash_hopper_forward.cu. */
export interface HopperForwardTile extends HopperTile {
  /** That the kernel is compiled for: a problem's, or the next one above it, up to which TMA fills up with zeros. */
  readonly headDimension: HopperHeadDimension;
  /** Each has 64 queries. */
  readonly warpgroups: number;
  /** Of a block. */
  readonly keys: number;
  readonly blocksPerMultiprocessor: number;
  /** Blocks of a cluster that share the keys of a tile. */
  readonly splits: 1 | 2 | 4;
  readonly queriesInRegisters: boolean;
  /** Whether the output leaves through the shared memory that the queries came to. */
  readonly outputOverQueries: boolean;
}

/** Kernels of flash_hopper_forward.cu. */
export interface HopperForwardPlan {
  readonly family: 'hopper';
  readonly forward: HopperForwardTile;
  /** Heads of q whose tiles are taken together, so that their keys and values stay in L2. */
  readonly forwardBand: number;
}

const rowsPerWarpgroup = 64;
const elementBytes = 2;
// TMA reads and writes multiples of 16 bytes: it could not reach the rows of a tensor whose rows are not multiples.
const headDimensionStep = 8;

function tile(
  headDimension: HopperHeadDimension,
  chunk: HopperTile['chunk'],
  [warpgroups, keys, stages]: readonly [warpgroups: number, keys: number, stages: number],
  [consumerRegisters, producerRegisters]: readonly [consumer: number, producer: number],
  more: Partial<HopperForwardTile> = {},
): HopperForwardTile {
  return {
    ...{ headDimension, chunk, warpgroups, keys, stages, consumerRegisters, producerRegisters },
    ...{ blocksPerMultiprocessor: 1, splits: 1, queriesInRegisters: false, outputOverQueries: false },
    ...more,
  };
}

/** Tiles for problems that fill the GPU. */
const largeTiles: Readonly<Record<HopperHeadDimension, HopperForwardTile>> = {
  16: tile(16, 16, [4, 96, 4], [112, 32]),
  32: tile(32, 32, [3, 128, 4], [160, 32]),
  64: tile(64, 64, [4, 64, 4], [112, 24]),
  80: tile(80, 16, [3, 96, 3], [160, 32]),
  96: tile(96, 32, [3, 96, 2], [160, 32]),
  128: tile(128, 64, [2, 128, 2], [232, 40]),
  192: tile(192, 64, [2, 96, 2], [240, 24], { outputOverQueries: true }),
  256: tile(256, 64, [2, 80, 2], [240, 24], { outputOverQueries: true }),
};

// 192 queries fill sequences of 256 to 1024 badly, and parts of 16 columns hold no head dimension of 72.
const d80Short = tile(80, 32, [2, 128, 3], [232, 40], { queriesInRegisters: true });
const d80Full = tile(80, 16, [4, 48, 6], [112, 32]);

/** Tiles for few queries, several of which share a multiprocessor. */
const fewTiles: Readonly<Record<HopperHeadDimension, HopperForwardTile>> = {
  16: tile(16, 16, [1, 64, 2], [104, 24], { blocksPerMultiprocessor: 4 }),
  32: tile(32, 32, [1, 64, 2], [104, 24], { blocksPerMultiprocessor: 4 }),
  64: tile(64, 64, [1, 64, 2], [136, 24], { blocksPerMultiprocessor: 3 }),
  80: tile(80, 32, [1, 64, 2], [136, 24], { blocksPerMultiprocessor: 3 }),
  96: tile(96, 32, [1, 64, 2], [208, 40], { blocksPerMultiprocessor: 2 }),
  128: tile(128, 64, [1, 64, 2], [208, 40], { blocksPerMultiprocessor: 2 }),
  192: tile(192, 64, [1, 64, 2], [232, 24]),
  256: tile(256, 64, [1, 64, 2], [232, 24]),
};

// So many tiles of 64 queries a multiprocessor are few: large ones would leave it idle, or load it unevenly.
const mostFew: Readonly<Record<HopperHeadDimension, number>> = {
  ...{ 16: 2.3, 32: 2.3, 64: 2.3, 80: 1.7 },
  ...{ 96: 1, 128: 1, 192: 0.75, 256: 0.75 },
};

/** What causal tiles count for: on average they see half of the keys, and short ones fill the gaps of long ones. */
const causalWork = 1 / 3;

// What keys and values of the heads of a band take. Measured on an H200; it leaves room in the L2 for the rest.
const bandBytes: Readonly<Record<HopperHeadDimension, number>> = {
  ...{ 16: 34e6, 32: 34e6, 64: 34e6, 80: 42e6 },
  ...{ 96: 17e6, 128: 17e6, 192: 17e6, 256: 17e6 },
};

/**
 * The forward kernels' plan, or null for a problem that they do not take: rows that TMA cannot read, and a scale that is
 * not above zero in float32, for where it turns scores around, the largest of them is no maximum, and 0 would turn the -∞ of
 * hidden keys into NaN.
 */
export function planHopperForward(problem: KernelProblem): HopperForwardPlan | null {
  const { batch, heads, keyHeads, keys, scale, headDimension } = problem;
  const padded = headDimensions.find((each) => each >= headDimension);
  const isAboveZero = Math.fround(scale * Math.LOG2E) > 0;
  if (!isForHopper(problem) || !isAboveZero || !padded || headDimension % headDimensionStep !== 0)
    return null;
  const ofKeys = Math.floor(bandBytes[padded] / (keys * 2 * elementBytes * headDimension));
  return {
    family: 'hopper',
    forward: forwardTile(problem, padded),
    forwardBand: evenBand(batch * heads, (ofKeys * heads) / keyHeads),
  };
}

/** Tiles as they were measured on an H200 to be fastest: docs/flash-attention.md. */
function forwardTile(problem: KernelProblem, headDimension: HopperHeadDimension): HopperForwardTile {
  const { batch, heads, queries, causal, multiprocessors } = problem;
  const tiles = Math.ceil(queries / rowsPerWarpgroup) * batch * heads;
  const work = (causal ? causalWork : 1) * tiles;
  if (work <= mostFew[headDimension] * multiprocessors) {
    const few = fewTiles[headDimension];
    return { ...few, splits: splitsOf(problem, few, tiles, work) };
  }
  if (headDimension !== 80) return largeTiles[headDimension];
  if (problem.headDimension < 80 || (causal && queries <= 1024)) return d80Short;
  return causal ? largeTiles[80] : d80Full;
}

/**
 * Blocks that share a tile's keys: several, where multiprocessors would be idle otherwise, and the tile has so many keys
 * that it pays for the launch of clusters, which takes some 0.05 µs for each of two blocks and 0.12 µs for each of four.
 */
function splitsOf(
  { keys, multiprocessors }: KernelProblem,
  few: HopperForwardTile,
  tiles: number,
  work: number,
): HopperForwardTile['splits'] {
  const resident = multiprocessors * few.blocksPerMultiprocessor;
  const blocks = keys / few.keys;
  if (4 * work <= 0.45 * resident && blocks > 5 + 0.4 * tiles) return 4;
  if (2 * work <= 1.2 * resident && blocks > 8 + 0.2 * tiles) return 2;
  return 1;
}
