import type { ModelShape } from '../model/shape.ts';

/** How the devices are divided: tensor parallel ranks are neighbours, then come those that shard, then replicas. */
export interface Layout {
  readonly name: string;
  /** Groups with parameters of their own, whose gradients are reduced. */
  readonly replicate: number;
  /** Ranks that share the parameters, gradients and moments of a group. */
  readonly shard: number;
  /** Ranks that share each product. */
  readonly tensor: number;
  /** Whether replicas share the optimizer's moments (ZeRO stage 1). */
  readonly shardsMoments: boolean;
}

export type Axis = 'replicate' | 'shard' | 'tensor';

export function ranksOf({ replicate, shard, tensor }: Layout): number {
  return replicate * shard * tensor;
}

const layout = (name: string, sizes: Partial<Omit<Layout, 'name'>>): Layout => ({
  ...{ name, replicate: 1, shard: 1, tensor: 1, shardsMoments: false },
  ...sizes,
});

export const dataParallel = (ranks: number) => layout('data parallel', { replicate: ranks });
export const zero1 = (ranks: number) => layout('ZeRO-1', { replicate: ranks, shardsMoments: true });

export const fullySharded = (ranks: number) => layout('fully sharded', { shard: ranks });
export const hybridSharded = (replicate: number, shard: number) =>
  layout('hybrid sharded', { replicate, shard });

export const tensorParallel = (ranks: number) => layout('tensor parallel', { tensor: ranks });
export const shardedTensor = (shard: number, tensor: number) =>
  layout(`sharded × tensor ${tensor}`, { shard, tensor });

/** Every way to divide `gpus` devices, in nodes of `perNode`, that is compared. */
export function layoutsOf(gpus: number, perNode: number): Layout[] {
  if (gpus === 1) return [layout('one GPU', {})];
  const nodes = gpus / perNode;
  const hybrid = Number.isInteger(nodes) && nodes > 1 && perNode > 1;
  return [
    dataParallel(gpus),
    zero1(gpus),
    fullySharded(gpus),
    ...(hybrid ? [hybridSharded(nodes, perNode)] : []),
    tensorParallel(gpus),
    ...powersOfTwo(Math.min(perNode, gpus / 2))
      .filter((tensor) => gpus % tensor === 0)
      .map((tensor) => shardedTensor(gpus / tensor, tensor)),
  ];
}

/** 2, 4, 8 ... up to `most`. */
function powersOfTwo(most: number): number[] {
  const count = Math.floor(Math.log2(most));
  return Array.from({ length: Math.max(0, count) }, (_, i) => 2 ** (i + 1));
}

/** Why a model cannot be divided so; null where it can. */
export function obstacleOf({ tensor }: Layout, shape: ModelShape): string | null {
  const { heads, keyValueHeads = heads, feedForwardDimension, vocabularySize } = shape;
  if (heads % tensor !== 0) return `${heads} heads cannot be divided by ${tensor}`;
  if (keyValueHeads % tensor !== 0)
    return `${keyValueHeads} heads of keys and values cannot be divided by ${tensor}`;
  if (feedForwardDimension % tensor !== 0)
    return `a feed-forward width of ${feedForwardDimension} cannot be divided by ${tensor}`;
  if (vocabularySize % tensor !== 0) return `${vocabularySize} tokens cannot be divided by ${tensor}`;
  return null;
}

/** The same layout of more or fewer devices: the axis that is divided over all of them grows. Null where that is none. */
export function resized(layout: Layout, gpus: number): Layout | null {
  const { replicate, shard, tensor } = layout;
  const isTensorAlone = tensor > 1 && replicate === 1 && shard === 1;
  if (isTensorAlone) return { ...layout, tensor: gpus };
  const grown: Layout =
    replicate > 1 || shard === 1
      ? { ...layout, replicate: gpus / (shard * tensor) }
      : { ...layout, shard: gpus / tensor };
  return Number.isInteger(grown.replicate) && Number.isInteger(grown.shard) ? grown : null;
}
