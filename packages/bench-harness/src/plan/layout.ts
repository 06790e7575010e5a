import type { StepSetting } from './setting.ts';

/** How the devices are divided: tensor parallel ranks are neighbours, then come those that shard, then replicas. */
export interface Layout {
  readonly name: string;
  /** Groups with parameters of their own, whose gradients are reduced. */
  readonly replicate: number;
  /** Ranks that share the parameters, gradients and moments of a group. */
  readonly shard: number;
  /** Ranks that share each product. */
  readonly tensor: number;
  /** Of the ranks that share the parameters, those that share each sequence: its keys and values go around them as a ring. */
  readonly context: number;
  /** Whether replicas share the optimizer's moments (ZeRO stage 1). */
  readonly shardsMoments: boolean;
}

export type Axis = 'replicate' | 'shard' | 'tensor' | 'context';

export function ranksOf({ replicate, shard, tensor }: Layout): number {
  return replicate * shard * tensor;
}

const layout = (name: string, sizes: Partial<Omit<Layout, 'name'>>): Layout => ({
  ...{ name, replicate: 1, shard: 1, tensor: 1, context: 1, shardsMoments: false },
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

export const sequencesDivided = (shard: number, context = shard) =>
  layout(context === shard ? 'sharded, sequences divided' : `sharded, sequences over ${context}`, {
    ...{ shard, context },
  });

/** Every way to divide `gpus` devices, in nodes of `perNode`, that is compared. */
export function layoutsOf(gpus: number, perNode: number): Layout[] {
  if (gpus === 1) return [layout('one GPU', {})];
  const nodes = gpus / perNode;
  const hybrid = Number.isInteger(nodes) && nodes > 1 && perNode > 1;
  const parts = powersOfTwo(Math.min(perNode, gpus / 2)).filter((ranks) => gpus % ranks === 0);
  return [
    dataParallel(gpus),
    zero1(gpus),
    fullySharded(gpus),
    ...(hybrid ? [hybridSharded(nodes, perNode)] : []),
    tensorParallel(gpus),
    ...parts.map((tensor) => shardedTensor(gpus / tensor, tensor)),
    ...[...parts, gpus].map((context) => sequencesDivided(gpus, context)),
  ];
}

/** 2, 4, 8 ... up to `most`. */
function powersOfTwo(most: number): number[] {
  const count = Math.floor(Math.log2(most));
  return Array.from({ length: Math.max(0, count) }, (_, i) => 2 ** (i + 1));
}

/** Why a model and its sequences cannot be divided so, however many these are; null where they can. */
export function obstacleOf(
  layout: Layout,
  { shape, context }: Pick<StepSetting, 'shape' | 'context'>,
): string | null {
  return tensorObstacle(layout, shape) ?? contextObstacle(layout, shape, context);
}

function tensorObstacle({ tensor }: Layout, shape: StepSetting['shape']): string | null {
  const { heads, keyValueHeads = heads, feedForwardDimension, vocabularySize } = shape;
  if (heads % tensor !== 0) return `${heads} heads cannot be divided by ${tensor}`;
  // Fewer heads of keys than ranks are shared by as many each.
  if (keyValueHeads % tensor !== 0 && tensor % keyValueHeads !== 0)
    return `${keyValueHeads} heads of keys and values cannot be divided by ${tensor}, nor ${tensor} by them`;
  if (feedForwardDimension % tensor !== 0)
    return `a feed-forward width of ${feedForwardDimension} cannot be divided by ${tensor}`;
  if (vocabularySize % tensor !== 0) return `${vocabularySize} tokens cannot be divided by ${tensor}`;
  return null;
}

function contextObstacle(
  { context: ranks }: Layout,
  { slidingWindow = Infinity }: StepSetting['shape'],
  context: number,
): string | null {
  if (ranks === 1) return null;
  if (slidingWindow < context)
    return `a sliding window of ${slidingWindow} is shorter than the context of ${context}, and the ring knows none`;
  return context % (2 * ranks) === 0
    ? null
    : `sequences of ${context} tokens cannot be divided by ${2 * ranks}, two chunks for each of ${ranks}`;
}

/** Why the sequences of a step cannot be dealt out whole to the ranks that share them; null where they can. */
export function batchObstacle(layout: Layout, { batch }: Pick<StepSetting, 'batch'>): string | null {
  // A third for each of three GPUs is one.
  const sequences = Math.round(batch * ranksOf(layout));
  const groups = ranksOf(layout) / (layout.tensor * layout.context);
  if (sequences % groups === 0) return null;
  return `${sequences} whole ${sequences === 1 ? 'sequence' : 'sequences'} cannot be divided by ${groups}`;
}

/** The same layout of more or fewer devices: the axis that is divided over all of them grows. Null where that is none. */
export function resized(layout: Layout, gpus: number): Layout | null {
  const { replicate, shard, tensor, context } = layout;
  const isTensorAlone = tensor > 1 && replicate === 1 && shard === 1;
  if (isTensorAlone) return { ...layout, tensor: gpus };
  const grown: Layout =
    replicate > 1 || shard === 1
      ? { ...layout, replicate: gpus / (shard * tensor) }
      : { ...layout, shard: gpus / tensor, ...(context === shard && { context: gpus / tensor }) };
  return [grown.replicate, grown.shard, grown.shard / grown.context].every(Number.isInteger) ? grown : null;
}
