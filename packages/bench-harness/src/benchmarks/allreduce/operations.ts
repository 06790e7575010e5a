/** The collectives by their names in nccl-tests. */
export const collectiveOps = [
  'allreduce',
  'allgather',
  'reducescatter',
  'broadcast',
  'reduce',
  'alltoall',
  'gather',
  'scatter',
  'sendrecv',
] as const;
export type CollectiveOp = (typeof collectiveOps)[number];

export const placements = ['out-of-place', 'in-place'] as const;
export type Placement = (typeof placements)[number];

export const collectiveDTypes = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64'] as const;
export type CollectiveDType = (typeof collectiveDTypes)[number];
const elementBytes: Readonly<Record<CollectiveDType, number>> = {
  float32: 4,
  float16: 2,
  bfloat16: 2,
  float64: 8,
  int32: 4,
  int64: 8,
};

interface Facts {
  /** Whether a size is that of all ranks' pieces together, as in nccl-tests. */
  readonly isOfAllPieces: boolean;
  readonly placements: readonly Placement[];
  /** What PyTorch has as well, and plots and fits show. */
  readonly compared: Placement;
  /** The bytes that each link carries, over the size: what makes bandwidths of any number of ranks comparable. */
  readonly busFactor: (ranks: number) => number;
  /** Whether nccl-tests names a reduction, and a root. */
  readonly reduces: boolean;
  readonly hasRoot: boolean;
}

const once = () => 1;
const ring = (ranks: number) => (ranks - 1) / ranks;
const plain = { isOfAllPieces: false, reduces: false, hasRoot: false, busFactor: once } as const;

/** Bus bandwidths as nccl-tests defines them (its doc/PERFORMANCE.md). */
export const factsOf: Readonly<Record<CollectiveOp, Facts>> = {
  allreduce: {
    ...plain,
    placements,
    compared: 'in-place',
    busFactor: (ranks) => 2 * ring(ranks),
    reduces: true,
  },
  allgather: { ...plain, isOfAllPieces: true, placements, compared: 'out-of-place', busFactor: ring },
  reducescatter: {
    ...plain,
    isOfAllPieces: true,
    placements,
    compared: 'out-of-place',
    busFactor: ring,
    reduces: true,
  },
  broadcast: { ...plain, placements: ['in-place'], compared: 'in-place', hasRoot: true },
  reduce: { ...plain, placements, compared: 'in-place', reduces: true, hasRoot: true },
  alltoall: {
    ...plain,
    isOfAllPieces: true,
    placements: ['out-of-place'],
    compared: 'out-of-place',
    busFactor: ring,
  },
  gather: {
    ...plain,
    isOfAllPieces: true,
    placements: ['out-of-place'],
    compared: 'out-of-place',
    busFactor: ring,
    hasRoot: true,
  },
  scatter: {
    ...plain,
    isOfAllPieces: true,
    placements: ['out-of-place'],
    compared: 'out-of-place',
    busFactor: ring,
    hasRoot: true,
  },
  sendrecv: { ...plain, placements: ['out-of-place'], compared: 'out-of-place' },
};

/** The root of collectives that have one. */
export const root = 0;

export interface CollectiveShape {
  readonly op: CollectiveOp;
  readonly ranks: number;
  readonly bytes: number;
  readonly dtype: CollectiveDType;
}

/** The elements of one rank's piece: as many as the bytes hold, for all ranks alike. */
export function pieceCount({ op, ranks, bytes, dtype }: CollectiveShape): number {
  const elements = Math.floor(bytes / elementBytes[dtype]);
  return factsOf[op].isOfAllPieces ? Math.floor(elements / ranks) : elements;
}

/** The bytes that bandwidths count: what pieces of whole elements come to. */
export function countedBytes(shape: CollectiveShape): number {
  const pieces = factsOf[shape.op].isOfAllPieces ? shape.ranks : 1;
  return pieceCount(shape) * pieces * elementBytes[shape.dtype];
}

/** Bytes a second. */
export function bandwidths(shape: CollectiveShape, timeMs: number): { algorithm: number; bus: number } {
  const algorithm = (countedBytes(shape) * 1000) / timeMs;
  return { algorithm, bus: algorithm * factsOf[shape.op].busFactor(shape.ranks) };
}

/** What a rank brings at place i: small whole numbers, whose sums every dtype holds exactly. */
export function broughtBy(rank: number, i: number): number {
  return (i + rank) % 3;
}

/** What `rank` must have at place i of its output; null where the op leaves it without one. */
export function expectedAt(
  op: CollectiveOp,
  rank: number,
  ranks: number,
  count: number,
): ((i: number) => number) | null {
  const sum = (i: number) => {
    let total = 0;
    for (let member = 0; member < ranks; member++) total += broughtBy(member, i);
    return total;
  };
  switch (op) {
    case 'allreduce':
      return sum;
    case 'reduce':
      return rank === root ? sum : null;
    case 'reducescatter':
      return (i) => sum(rank * count + i);
    case 'allgather':
      return (i) => broughtBy(Math.floor(i / count), i % count);
    case 'gather':
      return rank === root ? (i) => broughtBy(Math.floor(i / count), i % count) : null;
    case 'alltoall':
      return (i) => broughtBy(Math.floor(i / count), rank * count + (i % count));
    case 'broadcast':
      return (i) => broughtBy(root, i);
    case 'scatter':
      return (i) => broughtBy(root, rank * count + i);
    case 'sendrecv':
      return (i) => broughtBy((rank + ranks - 1) % ranks, i);
  }
}
