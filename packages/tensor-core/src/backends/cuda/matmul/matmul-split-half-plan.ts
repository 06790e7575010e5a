// How `split_half.cu` and `matmul_split_half.cu` of `kernels/matmul/` are launched. The caller encodes the tensor maps, packs
// the parameters and launches.

/** The tile of C that one thread block computes, and the depth of its pipeline. */
export interface SplitHalfTile {
  readonly blockM: 64 | 128;
  readonly blockN: 64 | 128;
  readonly stages: number;
  /** Microseconds for one K block of 64 on an idle GPU, and what is added to that with every multiprocessor busy. */
  readonly blockKUs: number;
  readonly contentionUs: number;
}

/** Every tile that the planner may take. Times were measured on an H200. */
export const splitHalfTiles: readonly SplitHalfTile[] = [
  { blockM: 128, blockN: 128, stages: 3, blockKUs: 1.0, contentionUs: 0.25 },
  { blockM: 128, blockN: 64, stages: 4, blockKUs: 0.56, contentionUs: 0.24 },
  { blockM: 64, blockN: 128, stages: 4, blockKUs: 0.6, contentionUs: 0.32 },
  { blockM: 64, blockN: 64, stages: 6, blockKUs: 0.38, contentionUs: 0.16 },
];

/** C[batch][m][n] = op(A)[m][k] · op(B)[k][n] on a GPU of `smCount` multiprocessors; `batch` is 1 by default. */
export interface SplitHalfMatmulShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch?: number;
  readonly smCount: number;
}

/** One launch of `matmul_split_half`. */
export interface SplitHalfMatmulPlan {
  readonly tile: SplitHalfTile;
  /** Blocks along x. */
  readonly gridSize: number;
  /** Threads. */
  readonly blockSize: number;
  readonly sharedMemoryBytes: number;
  /** Kernel parameters. */
  readonly streamTiles: number;
  readonly groupM: number;
  /** Bytes of the `partials` buffer; 0 where none is used. */
  readonly partialsBytes: number;
  /** Bytes of the `ready` flags: zero them once, when they are allocated. 0 where none is used. */
  readonly readyBytes: number;
  /** Microseconds that the model expects for this launch, without the split. */
  readonly modelledUs: number;
}

/** The K block of the kernels, and the side of the blocks that are split together. */
const block = 64;
/** As in `kernels/split_half.cuh`, for each 64×64 block: a word that summarizes its lines, and a byte for each line. */
const summaryBytes = 4;
const factorsBytesOfBlock = block;
const launchUs = 5.5;
/** How much of the operands L2 keeps (H100, H200: 50 to 60 MB in all). */
const cachedBytes = 40e6;
/** Columns of this many tiles are processed together, so that the operands of a wave fit into L2. */
const groupM = 8;

/**
 * The fastest launch according to the model: the number of consecutive K blocks times the time of one, plus the cost of
 * partial sums where tiles are shared. Throws a RangeError for sizes that are not positive integers.
 */
export function planSplitHalfMatmul(shape: SplitHalfMatmulShape): SplitHalfMatmulPlan {
  const { m, n, k, batch = 1, smCount } = shape;
  for (const [name, value] of Object.entries({ m, n, k, batch, smCount })) {
    if (!Number.isInteger(value) || value < 1) {
      throw new RangeError(`planSplitHalfMatmul: ${name} is ${value}; it must be a positive integer.`);
    }
  }
  const blocksK = Math.ceil(k / block);
  const plans = splitHalfTiles.flatMap((tile) => {
    const tilesM = Math.ceil(m / tile.blockM);
    const tiles = tilesM * Math.ceil(n / tile.blockN) * batch;
    const work = { tile, tiles, tilesM, blocksK, smCount };
    return streamCandidates(tiles, smCount).map((streamTiles) => planTile(work, streamTiles));
  });
  return plans.reduce((best, plan) => (plan.modelledUs < best.modelledUs ? plan : best));
}

/** Preprocessor definitions of `matmul_split_half.cu` for a tile and the operands' storage. */
export function splitHalfDefines(
  tile: SplitHalfTile,
  transA: boolean,
  transB: boolean,
): Record<string, number> {
  return {
    BLOCK_M: tile.blockM,
    BLOCK_N: tile.blockN,
    STAGES: tile.stages,
    TRANS_A: Number(transA),
    TRANS_B: Number(transB),
  };
}

/** How many tiles to distribute by K blocks: none, those of the last, partial wave, or a full wave more. */
function streamCandidates(tiles: number, smCount: number): number[] {
  const lastWave = tiles % smCount;
  if (lastWave === 0) return [0];
  return tiles < smCount ? [0, tiles] : [0, lastWave, lastWave + smCount];
}

interface Work {
  readonly tile: SplitHalfTile;
  readonly tiles: number;
  readonly tilesM: number;
  readonly blocksK: number;
  readonly smCount: number;
}

function planTile(work: Work, streamTiles: number): SplitHalfMatmulPlan {
  const { blockM, blockN, stages } = work.tile;
  const warpgroups = blockM / 64;
  const units = streamTiles === work.tiles ? work.tiles * work.blocksK : work.tiles;
  const gridSize = Math.min(work.smCount, units);
  return {
    tile: work.tile,
    gridSize,
    blockSize: 128 * (warpgroups + 1),
    sharedMemoryBytes: stages * 256 * (blockM + blockN) + 16 * stages + 1024,
    streamTiles,
    groupM,
    partialsBytes: streamTiles === 0 ? 0 : gridSize * blockM * blockN * 4,
    readyBytes: streamTiles === 0 ? 0 : gridSize * warpgroups * 4,
    modelledUs: modelUs(work, streamTiles, gridSize),
  };
}

function modelUs(work: Work, streamTiles: number, gridSize: number): number {
  const { tile, tiles, blocksK, smCount } = work;
  const shared = Math.ceil((streamTiles * blocksK) / gridSize);
  const whole = Math.ceil((tiles - streamTiles) / gridSize) * blocksK;
  const blockKUs = tile.blockKUs + tile.contentionUs * (gridSize / smCount);
  const partialSums = shared > 0 ? partialSumsUs(tile, blocksK, shared) : 0;
  return launchUs + (whole + shared * missFactor(work, streamTiles)) * blockKUs + partialSums;
}

/** A block writes one partial sum, and adds those of as many followers as share its tile. */
function partialSumsUs(tile: SplitHalfTile, blocksK: number, shared: number): number {
  const area = (tile.blockM * tile.blockN) / (128 * 128);
  return (2.5 + 1.5 * Math.ceil(blocksK / shared)) * (0.3 + 0.7 * area);
}

/** Blocks that share a tile are at different K: they find operands in L2 only if the operands fit as a whole. */
function missFactor({ tile, tilesM, blocksK }: Work, streamTiles: number): number {
  const rows = Math.min(streamTiles, tilesM) * tile.blockM + Math.ceil(streamTiles / tilesM) * tile.blockN;
  return 1 + 0.5 * Math.max(0, 1 - cachedBytes / (rows * blocksK * block * 4));
}

/** A stored matrix, or `batch` of them; used plain or transposed, it is split the same way. */
export interface SplitHalfOperandShape {
  readonly rows: number;
  readonly columns: number;
  readonly batch?: number;
}

/** Sizes of the buffers that hold a split operand, and what its tensor map is encoded from. */
export interface SplitHalfOperandLayout {
  /** fp16 elements between rows of a plane. */
  readonly pitch: number;
  /** fp16 [batch][2][rows][pitch]. */
  readonly planesBytes: number;
  readonly summariesBytes: number;
  readonly factorsBytes: number;
  /** Thread blocks of `split_half` for this operand. */
  readonly blocks: number;
  readonly tensorMap: {
    readonly dimensions: readonly [number, number, number, number];
    readonly strideBytes: readonly [number, number, number];
    readonly box: readonly [64, 64, 1, 1];
  };
}

/** Threads of a block of `split_half`; its grid is the sum of its operands' `blocks`. */
export const splitHalfThreads = 256;

/**
 * Microseconds that the model expects for one launch of `split_half` over `elements` in all. With a plan's `modelledUs` it
 * says where the detour pays: not for a few rows times a large weight, all of which splitting reads and writes.
 */
export function modelSplitHalfUs(elements: number): number {
  const bytesEach = 8;
  const bytesPerUs = 3.9e6;
  return 3 + (elements * bytesEach) / bytesPerUs;
}

/** The layout of a split operand. TMA needs rows of a multiple of 16 bytes, hence the pitch. */
export function layoutSplitHalfOperand(shape: SplitHalfOperandShape): SplitHalfOperandLayout {
  const { rows, columns, batch = 1 } = shape;
  const pitch = Math.ceil(columns / 8) * 8;
  const planeBytes = rows * pitch * 2;
  const blocks = batch * Math.ceil(rows / block) * Math.ceil(columns / block);
  return {
    pitch,
    planesBytes: batch * 2 * planeBytes,
    summariesBytes: blocks * summaryBytes,
    factorsBytes: blocks * factorsBytesOfBlock,
    blocks,
    tensorMap: {
      dimensions: [columns, rows, 2, batch],
      strideBytes: [pitch * 2, planeBytes, 2 * planeBytes],
      box: [64, 64, 1, 1],
    },
  };
}
