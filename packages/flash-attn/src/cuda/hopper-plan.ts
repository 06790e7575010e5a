import type { KernelProblem } from './kernel-plan.ts';

interface HopperTile {
  /** Columns of a part of a tile in shared memory; see kernels/hopper_tiles.cuh. */
  readonly chunk: 16 | 32 | 64;
  /** Of the rings that TMA fills. */
  readonly stages: number;
  /** Of a thread that calculates, and of one that does not. */
  readonly consumerRegisters: number;
  readonly producerRegisters: number;
}

/** A variant of kernels/flash_hopper_forward.cu. */
export interface HopperForwardTile extends HopperTile {
  /** Each has 64 queries. */
  readonly warpgroups: number;
  /** Of a block. */
  readonly keys: number;
  readonly blocksPerMultiprocessor: number;
  readonly queriesInRegisters: boolean;
}

/** A variant of kernels/flash_hopper_backward.cu, whose blocks have 128 keys. */
export interface HopperBackwardTile extends HopperTile {
  readonly queries: number;
}

/** Kernels of flash_hopper_forward.cu and flash_hopper_backward.cu. */
export interface HopperPlan {
  readonly family: 'hopper';
  readonly forward: HopperForwardTile;
  readonly backward: HopperBackwardTile;
  /** Heads of q whose tiles are taken together in the forward pass, so that their keys and values stay in L2. */
  readonly forwardBand: number;
  /** Heads of k whose tiles are taken together in the backward pass, so that the queries and gradients stay in L2. */
  readonly backwardBand: number;
}

type HopperHeadDimension = 64 | 80 | 128;

const rowsPerWarpgroup = 64;
const elementBytes = 2;
// Limits of a grid, and of the 32-bit numbers that kernels count tiles by.
const mostHeads = 65535;
const mostTiles = 2 ** 30;

type ForwardTileName = 'd64' | 'd64Few' | 'd80' | 'd80Short' | 'd80Full' | 'd128';

const forwardTiles: Readonly<Record<ForwardTileName, HopperForwardTile>> = {
  d64: {
    ...{
      warpgroups: 4,
      keys: 64,
      stages: 4,
      chunk: 64,
      blocksPerMultiprocessor: 1,
      queriesInRegisters: false,
    },
    ...{ consumerRegisters: 112, producerRegisters: 24 },
  },
  d64Few: {
    ...{
      warpgroups: 1,
      keys: 64,
      stages: 2,
      chunk: 64,
      blocksPerMultiprocessor: 3,
      queriesInRegisters: false,
    },
    ...{ consumerRegisters: 136, producerRegisters: 24 },
  },
  d80: {
    ...{
      warpgroups: 3,
      keys: 96,
      stages: 3,
      chunk: 16,
      blocksPerMultiprocessor: 1,
      queriesInRegisters: true,
    },
    ...{ consumerRegisters: 160, producerRegisters: 32 },
  },
  d80Short: {
    ...{
      warpgroups: 2,
      keys: 128,
      stages: 3,
      chunk: 32,
      blocksPerMultiprocessor: 1,
      queriesInRegisters: true,
    },
    ...{ consumerRegisters: 232, producerRegisters: 40 },
  },
  d80Full: {
    ...{
      warpgroups: 4,
      keys: 48,
      stages: 6,
      chunk: 16,
      blocksPerMultiprocessor: 1,
      queriesInRegisters: false,
    },
    ...{ consumerRegisters: 112, producerRegisters: 32 },
  },
  d128: {
    ...{
      warpgroups: 2,
      keys: 128,
      stages: 2,
      chunk: 64,
      blocksPerMultiprocessor: 1,
      queriesInRegisters: false,
    },
    ...{ consumerRegisters: 232, producerRegisters: 40 },
  },
};

const backwardTiles: Readonly<Record<HopperHeadDimension, HopperBackwardTile>> = {
  64: { queries: 128, stages: 2, chunk: 64, consumerRegisters: 232, producerRegisters: 40 },
  80: { queries: 128, stages: 2, chunk: 32, consumerRegisters: 240, producerRegisters: 24 },
  128: { queries: 64, stages: 2, chunk: 64, consumerRegisters: 232, producerRegisters: 40 },
};

// What two tensors of the heads of a band take. Measured on an H200, of whose L2 it leaves room for the rest.
const forwardBandBytes: Readonly<Record<HopperHeadDimension, number>> = { 64: 34e6, 80: 42e6, 128: 17e6 };
const causalBandBytes: Readonly<Record<HopperHeadDimension, number>> = { 64: 17e6, 80: 21e6, 128: 34e6 };
const fullBandBytes: Readonly<Record<HopperHeadDimension, number>> = { 64: 34e6, 80: 10e6, 128: 34e6 };

/** The Hopper kernels' plan, or null for a problem that they do not take. */
export function planHopper(problem: KernelProblem): HopperPlan | null {
  if (!isForHopper(problem)) return null;
  const { batch, heads, keyHeads, queries, keys, causal } = problem;
  const headDimension = problem.headDimension as HopperHeadDimension;
  const group = heads / keyHeads;
  const rowBytes = 2 * elementBytes * headDimension;
  const ofKeys = Math.floor(forwardBandBytes[headDimension] / (keys * rowBytes));
  const budget = (causal ? causalBandBytes : fullBandBytes)[headDimension];
  const ofQueries = Math.floor(budget / (group * queries * rowBytes));
  return {
    family: 'hopper',
    forward: forwardTile(problem, headDimension),
    backward: backwardTiles[headDimension],
    forwardBand: evenBand(batch * heads, ofKeys * group),
    backwardBand: evenBand(batch * keyHeads, ofQueries),
  };
}

// The stale maximum of the forward pass is none for scores that a negative scale turns around; backward adds gradQ in an
// order of chance.
function isForHopper(problem: KernelProblem): boolean {
  const { computeCapability, dtype, headDimension, scale, deterministic } = problem;
  const { batch, heads, queries, keys } = problem;
  return (
    computeCapability === 90 &&
    (dtype === 'bfloat16' || dtype === 'float16') &&
    (headDimension === 64 || headDimension === 80 || headDimension === 128) &&
    scale > 0 &&
    !deterministic &&
    batch * heads > 0 &&
    queries > 0 &&
    keys > 0 &&
    batch * heads <= mostHeads &&
    (batch * heads * Math.max(queries, keys)) / rowsPerWarpgroup < mostTiles
  );
}

/** Tiles as they were measured on an H200 to be fastest: docs/flash-attention.md. */
function forwardTile(
  { batch, heads, queries, causal, multiprocessors }: KernelProblem,
  headDimension: HopperHeadDimension,
): HopperForwardTile {
  const { d64, d64Few, d80, d80Short, d80Full, d128 } = forwardTiles;
  if (headDimension === 128) return d128;
  if (headDimension === 80) return causal ? (queries <= 1024 ? d80Short : d80) : d80Full;
  const tiles = Math.ceil(queries / (rowsPerWarpgroup * d64.warpgroups)) * batch * heads;
  return tiles < 2 * multiprocessors ? d64Few : d64;
}

/** At most `most` heads, at least one, and as many in the last band as in the others. */
function evenBand(heads: number, most: number): number {
  const bands = Math.ceil(heads / Math.max(1, Math.min(heads, most)));
  return Math.ceil(heads / bands);
}
