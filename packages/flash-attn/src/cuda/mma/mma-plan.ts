import { DeviceError, byteSize } from '@roofline/tensor-core';
import { type FlashTile, warpsOf } from '../flash-tile.ts';
import type { KernelProblem } from '../kernel-problem.ts';
import {
  type Candidates,
  backwardTiles16,
  backwardTiles32,
  forwardTiles16,
  forwardTiles32,
} from './mma-tiles.ts';

interface MmaTile {
  /** As kernels are compiled for it: rounded up. */
  readonly headDimension: number;
  readonly queries: number;
  readonly keys: number;
  readonly warps: number;
  readonly blocksPerMultiprocessor: number;
  /** Whether fragments of what a warp has of its own, queries or keys and values, stay in registers. */
  readonly isHeld: boolean;
  /** Of each pair of float32 operands: 3 for float32's accuracy, 1 for TF32's; 1 in 16-bit types. */
  readonly products: 1 | 3;
}

/** A variant of kernels/mma/flash_mma_forward.cu. */
export interface MmaForwardTile extends MmaTile {
  /** Blocks that share a tile of queries, each with a part of the keys. */
  readonly splits: number;
}

/** A variant of kernels/mma/flash_mma_backward.cu. */
export interface MmaBackwardTile extends MmaTile {
  /** The forward pass's head dimension, over which scores are summed: its own may be rounded up further. */
  readonly scoreDimension: number;
  /** Tiles of queries in shared memory. */
  readonly stages: 1 | 2;
  /** Blocks that share a tile of keys, each with as many columns of the gradients. */
  readonly parts: 1 | 2 | 4;
}

/** Kernels of flash_mma_forward.cu. */
export interface MmaForwardPlan {
  readonly family: 'mma';
  readonly forward: MmaForwardTile;
}

/** Kernels of flash_mma_backward.cu and flash_mma_rows.cu. */
export interface MmaBackwardPlan {
  readonly family: 'mma';
  readonly backward: MmaBackwardTile;
  /** Whether blocks of keys add to gradQ in their order. */
  readonly deterministic: boolean;
}

const rowsPerWarp = 16;
const headDimensionStep = 16;
const vectorBytes = 16;
/** Each block takes this much of a multiprocessor's shared memory in addition to its own. */
const reservedBytes = 1024;
/** Numbers of a query that the backward pass holds in shared memory: three of float32. */
const rowBytes = 12;
/** Of a grid, and of the 32-bit numbers that kernels count with. */
const mostBlocks = 2 ** 31 - 1;

/** Joining takes a kernel of its own, and time for each split: one has this many tiles of keys at least. */
const fewestTilesOfSplit = 4;
const mostSplits = 32;

/** Bytes of a row of a tile in shared memory; see kernels/mma/mma_tiles.cuh. */
const tileRowBytes = (headDimension: number, elementBytes: number) =>
  headDimension * elementBytes + vectorBytes;

type ForwardSizes = Pick<MmaTile, 'queries' | 'keys' | 'headDimension'>;

/** As flash_mma_forward.cu says. */
export function mmaForwardSharedBytes(
  { queries, keys, headDimension }: ForwardSizes,
  elementBytes: number,
): number {
  return (queries + 2 * keys) * tileRowBytes(headDimension, elementBytes);
}

type BackwardSizes = Pick<MmaBackwardTile, 'queries' | 'keys' | 'headDimension' | 'stages'>;

/** As flash_mma_backward.cu says. */
export function mmaBackwardSharedBytes(
  { queries, keys, headDimension, stages }: BackwardSizes,
  elementBytes: number,
): number {
  const tiles = 2 * (keys + stages * queries) * tileRowBytes(headDimension, elementBytes);
  const gradients = elementBytes === 2 ? 2 * keys * (queries + 8) : 4 * queries * (keys + 8);
  return tiles + stages * rowBytes * queries + gradients;
}

/** Of flash_mma_after. */
export function mmaAfterSharedBytes(
  { queries, headDimension }: Pick<MmaBackwardTile, 'queries' | 'headDimension'>,
  elementBytes: number,
): number {
  return queries * tileRowBytes(headDimension, elementBytes);
}

/** The forward kernel's plan, or null for a problem that it does not take. */
export function planMmaForward(problem: KernelProblem): MmaForwardPlan | null {
  if (!isForMma(problem)) return null;
  const { dtype, queries, batch, heads } = problem;
  const headDimension = roundUp(problem.headDimension, headDimensionStep);
  const tiles = candidatesFor(dtype === 'float32' ? forwardTiles32 : forwardTiles16, headDimension);
  const fitted = tiles.map(({ blocks, isHeld = false, ...sizes }) => {
    const tile = { ...sizes, isHeld, headDimension, products: productsOf(problem) };
    const sharedBytes = mmaForwardSharedBytes(tile, byteSize(dtype));
    const grid = Math.ceil(queries / tile.queries) * heads * batch;
    // Warps with more rows than one instruction has are fewer: they need as many more blocks.
    return { tile, blocks, sharedBytes, grid, fillings: tile.queries / (rowsPerWarp * tile.warps) };
  });
  const tile = chooseTile(fitted, problem);
  return tile && { family: 'mma', forward: { ...tile, splits: splitsOf(tile, problem) } };
}

/**
 * The forward kernel with a tile that was chosen by hand, one block on a multiprocessor and every key in one. Throws a DeviceError
 * for a problem that the kernel does not take, and where the GPU has no room for the tile.
 */
export function planMmaTile(problem: KernelProblem, tile: FlashTile): MmaForwardPlan {
  const { dtype, maxSharedBytesPerBlock } = problem;
  if (!isForMma(problem))
    throw new DeviceError(
      `flashAttention: tiles are chosen of kernels on tensor cores, from compute capability 8.0 on and of float32 or 16-bit ` +
        `types; ${dtype} at compute capability ${problem.computeCapability / 10} has none.`,
    );
  const headDimension = roundUp(problem.headDimension, headDimensionStep);
  const { queries, keys } = tile;
  const sharedBytes = mmaForwardSharedBytes({ queries, keys, headDimension }, byteSize(dtype));
  if (sharedBytes > maxSharedBytesPerBlock)
    throw new DeviceError(
      `flashAttention: a tile of ${queries} queries and ${keys} keys takes ${sharedBytes} bytes of shared memory in ${dtype} with ` +
        `head dimension ${problem.headDimension}, and this GPU has ${maxSharedBytesPerBlock} for a block; take a smaller one.`,
    );
  const one = { blocksPerMultiprocessor: 1, isHeld: false, splits: 1 } as const;
  const sizes = { queries, keys, headDimension, warps: warpsOf(tile), products: productsOf(problem) };
  return { family: 'mma', forward: { ...sizes, ...one } };
}

/** As many as fill the multiprocessors, where the tiles of queries do not, with enough keys for each. */
function splitsOf(
  tile: Pick<MmaTile, 'queries' | 'keys' | 'blocksPerMultiprocessor'>,
  { batch, heads, queries, keys, multiprocessors }: KernelProblem,
): number {
  const grid = Math.ceil(queries / tile.queries) * heads * batch;
  if (grid >= multiprocessors || grid === 0) return 1;
  const filling = Math.floor((multiprocessors * tile.blocksPerMultiprocessor) / grid);
  const longEnough = Math.floor(keys / tile.keys / fewestTilesOfSplit);
  return Math.max(1, Math.min(filling, longEnough, mostSplits));
}

/** The backward kernels' plan, or null for a problem that they do not take. */
export function planMmaBackward(problem: KernelProblem): MmaBackwardPlan | null {
  if (!isForMma(problem)) return null;
  const { dtype, keys, batch, keyHeads, deterministic } = problem;
  const scoreDimension = roundUp(problem.headDimension, headDimensionStep);
  const tiles = candidatesFor(dtype === 'float32' ? backwardTiles32 : backwardTiles16, problem.headDimension);
  const fitted = tiles.map(({ blocks, isHeld = false, isForLittleMemory = false, ...sizes }) => {
    const headDimension = roundUp(problem.headDimension, headDimensionStep * sizes.parts);
    const own = {
      headDimension,
      scoreDimension,
      keys: rowsPerWarp * sizes.warps,
      products: productsOf(problem),
    };
    const tile = { ...sizes, ...own, isHeld };
    const sharedBytes = mmaBackwardSharedBytes(tile, byteSize(dtype));
    const grid = Math.ceil(keys / tile.keys) * tile.parts * keyHeads * batch;
    return { tile, blocks, sharedBytes, grid, fillings: 1, isForLittleMemory };
  });
  const backward = chooseTile(fitted, problem);
  return backward && { family: 'mma', backward, deterministic };
}

// A scale that float32 has as zero would turn the -∞ of hidden keys into NaN.
function isForMma({ computeCapability, dtype, scale, batch, heads, queries, keys }: KernelProblem): boolean {
  return (
    computeCapability >= 80 &&
    (dtype === 'bfloat16' || dtype === 'float16' || dtype === 'float32') &&
    Math.fround(scale * Math.LOG2E) !== 0 &&
    batch * heads * Math.max(queries, keys) <= mostBlocks
  );
}

function productsOf({ dtype, float32Precision }: KernelProblem): 1 | 3 {
  return dtype === 'float32' && float32Precision === 'highest' ? 3 : 1;
}

function candidatesFor<T>(all: readonly Candidates<T>[], headDimension: number): readonly T[] {
  return all.find((candidates) => headDimension <= candidates.headDimension)?.tiles ?? [];
}

/** A tile for a problem. */
interface Fitted<T> {
  readonly tile: T;
  /** That registers have room for on a multiprocessor. */
  readonly blocks: number;
  readonly sharedBytes: number;
  /** Blocks of the whole grid, and how many of them each multiprocessor should have at least. */
  readonly grid: number;
  readonly fillings: number;
  readonly isForLittleMemory?: boolean;
}

/**
 * Of the tiles that fit into shared memory the first that fills the GPU, with as many blocks on a multiprocessor as
 * registers have room for. Where no grid is large enough, that of the most blocks; where shared memory has room for fewer,
 * the tile with the most warps on a multiprocessor. Null if none fits.
 */
function chooseTile<T extends { readonly warps: number }>(
  all: readonly Fitted<T>[],
  { multiprocessors, maxSharedBytesPerBlock }: KernelProblem,
): (T & { readonly blocksPerMultiprocessor: number }) | null {
  const fitted = all.flatMap((candidate) => {
    const { sharedBytes, blocks } = candidate;
    const room = Math.floor((maxSharedBytesPerBlock + reservedBytes) / (sharedBytes + reservedBytes));
    return room === 0 ? [] : [{ ...candidate, resident: Math.min(blocks, room), isWhole: room >= blocks }];
  });
  const fitting = fitted.filter(({ isForLittleMemory }, i) => i === 0 || !isForLittleMemory);
  const most = Math.max(...fitting.map(({ grid }) => grid));
  const enough = fitting.filter(({ grid, fillings }) => grid >= Math.min(fillings * multiprocessors, most));
  const warpsOf = ({ tile, resident }: (typeof fitting)[number]) => tile.warps * resident;
  const chosen =
    enough.find(({ isWhole }) => isWhole) ?? [...enough].sort((a, b) => warpsOf(b) - warpsOf(a))[0];
  return chosen ? { ...chosen.tile, blocksPerMultiprocessor: chosen.resident } : null;
}

function roundUp(x: number, multiple: number): number {
  return Math.ceil(x / multiple) * multiple;
}
