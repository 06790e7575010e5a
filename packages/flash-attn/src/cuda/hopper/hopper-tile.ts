import type { KernelProblem } from '../kernel-problem.ts';

/** What the tiles of both directions have. */
export interface HopperTile {
  /** Columns of a part of a tile in shared memory; see kernels/hopper/hopper_tiles.cuh. */
  readonly chunk: 16 | 32 | 64;
  /** Of the rings that TMA fills. */
  readonly stages: number;
  /** Of a thread that calculates, and of one that does not. */
  readonly consumerRegisters: number;
  readonly producerRegisters: number;
}

const rowsPerWarpgroup = 64;
// The limit of the 32-bit numbers that kernels count tiles by.
const mostTiles = 2 ** 30;

/** Whether there is something to calculate that wgmma and TMA of compute capability 9.0 can. */
export function isForHopper(problem: KernelProblem): boolean {
  const { computeCapability, dtype, batch, heads, queries, keys } = problem;
  return (
    computeCapability === 90 &&
    (dtype === 'bfloat16' || dtype === 'float16') &&
    batch * heads > 0 &&
    queries > 0 &&
    keys > 0 &&
    (batch * heads * Math.max(queries, keys)) / rowsPerWarpgroup < mostTiles
  );
}

/** At most `most` heads, at least one, and as many in the last band as in the others. */
export function evenBand(heads: number, most: number): number {
  const bands = Math.ceil(heads / Math.max(1, Math.min(heads, most)));
  return Math.ceil(heads / bands);
}
