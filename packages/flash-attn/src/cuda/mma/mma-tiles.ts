// The tiles of kernels/mma/flash_mma_forward.cu and flash_mma_backward.cu, as they were measured on an H200 to be fastest:
// docs/flash-attention.md. `blocks` is how many a multiprocessor's registers have room for.

export interface ForwardCandidate {
  readonly queries: number;
  readonly keys: number;
  readonly warps: number;
  readonly blocks: number;
  /** Whether the queries' fragments stay in registers. */
  readonly isHeld?: true;
}

export interface BackwardCandidate {
  readonly queries: number;
  /** Each has 16 keys. */
  readonly warps: number;
  readonly stages: 1 | 2;
  readonly parts: 1 | 2 | 4;
  readonly blocks: number;
  /** Whether the fragments of keys and values stay in registers. */
  readonly isHeld?: true;
  /** Only for GPUs whose shared memory is too small for those before it. */
  readonly isForLittleMemory?: true;
}

/** The tiles for head dimensions up to this one, large ones first. */
export interface Candidates<T> {
  readonly headDimension: number;
  readonly tiles: readonly T[];
}

export const forwardTiles16: readonly Candidates<ForwardCandidate>[] = [
  {
    headDimension: 64,
    tiles: [
      { queries: 128, keys: 64, warps: 4, blocks: 2, isHeld: true },
      { queries: 64, keys: 64, warps: 4, blocks: 3 },
      { queries: 32, keys: 64, warps: 2, blocks: 5 },
    ],
  },
  {
    headDimension: 128,
    tiles: [
      { queries: 128, keys: 64, warps: 4, blocks: 2 },
      { queries: 64, keys: 64, warps: 4, blocks: 2 },
      { queries: 64, keys: 48, warps: 4, blocks: 2 },
      { queries: 32, keys: 64, warps: 2, blocks: 4 },
      { queries: 32, keys: 32, warps: 2, blocks: 4 },
    ],
  },
  {
    headDimension: 256,
    tiles: [
      { queries: 64, keys: 64, warps: 4, blocks: 2 },
      { queries: 128, keys: 64, warps: 8, blocks: 1 },
      { queries: 64, keys: 32, warps: 4, blocks: 1 },
      { queries: 32, keys: 32, warps: 2, blocks: 3 },
    ],
  },
];

// No tiles of fewer than four warps, but where shared memory has no room for more: each warp of four has a part of its
// multiprocessor to itself, so that apart they would be no faster, and with few queries the forward pass shares out the keys.
// Measured at d 64 (b4 h12 n256 and n512, b8 n4096) smaller tiles gain nothing in either direction, and each is a kernel more to
// compile. Above d 128 nothing was measured, and eight warps share a multiprocessor's four parts: small tiles stay there.
export const forwardTiles32: readonly Candidates<ForwardCandidate>[] = [
  {
    headDimension: 64,
    tiles: [
      { queries: 64, keys: 64, warps: 4, blocks: 3 },
      { queries: 64, keys: 32, warps: 4, blocks: 2 },
    ],
  },
  { headDimension: 128, tiles: [{ queries: 64, keys: 32, warps: 4, blocks: 2 }] },
  {
    headDimension: 256,
    tiles: [
      { queries: 128, keys: 32, warps: 8, blocks: 1 },
      { queries: 64, keys: 32, warps: 4, blocks: 1 },
      { queries: 32, keys: 32, warps: 2, blocks: 2 },
    ],
  },
];

export const backwardTiles16: readonly Candidates<BackwardCandidate>[] = [
  {
    headDimension: 64,
    tiles: [
      { queries: 64, warps: 4, stages: 2, parts: 1, blocks: 2, isHeld: true },
      { queries: 64, warps: 4, stages: 1, parts: 1, blocks: 2, isHeld: true },
      { queries: 32, warps: 2, stages: 2, parts: 1, blocks: 4 },
    ],
  },
  {
    headDimension: 128,
    tiles: [
      { queries: 64, warps: 8, stages: 2, parts: 1, blocks: 1 },
      { queries: 32, warps: 4, stages: 2, parts: 1, blocks: 2 },
      { queries: 64, warps: 4, stages: 1, parts: 1, blocks: 1 },
      { queries: 32, warps: 2, stages: 1, parts: 1, blocks: 4 },
    ],
  },
  {
    headDimension: 256,
    tiles: [
      { queries: 64, warps: 8, stages: 1, parts: 2, blocks: 1 },
      { queries: 32, warps: 4, stages: 1, parts: 2, blocks: 2 },
      { queries: 32, warps: 2, stages: 1, parts: 2, blocks: 3 },
    ],
  },
];

export const backwardTiles32: readonly Candidates<BackwardCandidate>[] = [
  { headDimension: 64, tiles: [{ queries: 32, warps: 4, stages: 2, parts: 1, blocks: 2 }] },
  {
    headDimension: 128,
    tiles: [
      { queries: 32, warps: 4, stages: 1, parts: 1, blocks: 2 },
      { queries: 32, warps: 2, stages: 1, parts: 1, blocks: 4, isForLittleMemory: true },
    ],
  },
  {
    headDimension: 256,
    tiles: [
      { queries: 32, warps: 4, stages: 1, parts: 2, blocks: 1 },
      { queries: 16, warps: 2, stages: 1, parts: 2, blocks: 2 },
      { queries: 16, warps: 1, stages: 1, parts: 2, blocks: 2 },
    ],
  },
];
