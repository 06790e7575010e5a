import {
  RooflineError,
  checkFunction,
  checkObject,
  checkText,
  defaultGenerator,
  describeValue,
  device,
  keep,
  scope,
} from '@roofline/tensor-core';
import { requireSharded } from '../checkpoint/sharded-checkpoint.ts';
import { SafetensorsFile } from '../checkpoint/safetensors.ts';
import { type GatheringRanks, together } from '../checkpoint/together.ts';
import { gatherGenerators, generatorOfRank } from './rank-generators.ts';
import {
  type GroupedPartOptimizer,
  type ShardedTraining,
  loadShardedTraining,
  saveShardedTraining,
} from './sharded-training.ts';
import {
  type SavableOptimizer,
  type SavableState,
  type SavedTraining,
  type TrainingParts,
  type TrainingPlace,
  checkParts,
  checkPlace,
  headerOf,
  loadTraining,
  requireSaved,
  sourcesUnder,
  writeTraining,
} from './training-file.ts';

/** An optimizer whose state is split over the ranks: `ShardedOptimizer` of @roofline/collectives. */
export interface SavableShardedOptimizer {
  readonly group: object;
  stateDict(options: { readonly root: number }): Promise<SavableState | null>;
  loadStateDict(state: SavableState): Promise<void>;
}

/** What a training on several ranks is made of. */
export interface RankTrainingParts extends Omit<TrainingParts, 'optimizer'> {
  /** The model's `DistributedDataParallel`, or what `fullyShard` gave, of @roofline/collectives. */
  readonly parallel: { readonly group: GatheringRanks } | ShardedTraining;
  /** A `ShardedOptimizer` too; of a sharded model one that has `groups`, as those of @roofline/optim. */
  readonly optimizer?: SavableOptimizer | SavableShardedOptimizer;
}

/**
 * `saveTraining` of ranks that train together: one file, the same for any number of ranks and any division of the state, which rank 0 writes.
 * `loadTraining` of one process reads it, and `loadTrainingOnRanks` of any number of ranks. A collective: all ranks call it, between
 * two steps. No rank ever holds more of a sharded model than a unit. Each rank's random generator is in it. Throws on all ranks what
 * fails on one; the file before is then as it was.
 */
export async function saveTrainingOnRanks(
  path: string,
  parts: RankTrainingParts,
  place: TrainingPlace,
): Promise<void> {
  const owner = 'saveTrainingOnRanks';
  const { parallel, optimizer, ...others } = checked(owner, path, parts);
  checkPlace(owner, place);
  if (isSharded(parallel)) {
    const grouped = optimizer && requireGroups(owner, optimizer);
    await saveShardedTraining(path, { ...others, parallel, ...(grouped && { optimizer: grouped }) }, place);
    return;
  }
  const { group } = parallel;
  const generators = await gatherGenerators(group, parts.generator ?? defaultGenerator);
  const whole = optimizer && isSplit(optimizer) ? await optimizer.stateDict({ root: 0 }) : null;
  const saved = whole ? { stateDict: () => whole, loadStateDict() {} } : (optimizer as SavableOptimizer);
  try {
    await together(group, owner, () => {
      if (group.rank > 0) return;
      writeTraining(path, { ...others, ...(saved && { optimizer: saved }) }, place, generators);
    });
  } finally {
    for (const tensor of Object.values(whole?.tensors ?? {})) tensor.dispose();
  }
}

/**
 * `loadTraining` on ranks that train together, of a file of `saveTraining` or `saveTrainingOnRanks`, whatever number of ranks wrote
 * it: each rank reads what it needs. On as many ranks a training goes on to the last bit, on another number within rounding. Ranks go
 * on with their random generators. Of more ranks than were saved, the new ones draw from rank 0's place in the sequences of the
 * seeds after the greatest that was saved; of fewer, and in one process, those of ranks that are gone are gone too. So what depends on
 * random numbers, such as dropout, becomes another draw where the number changes. A collective. Throws on all ranks what fails on
 * one: what `loadTraining` throws.
 */
export async function loadTrainingOnRanks(path: string, parts: RankTrainingParts): Promise<SavedTraining> {
  const owner = 'loadTrainingOnRanks';
  const { parallel, optimizer, ...others } = checked(owner, path, parts);
  if (isSharded(parallel)) {
    const grouped = optimizer && requireGroups(owner, optimizer);
    return await loadShardedTraining(path, { ...others, parallel, ...(grouped && { optimizer: grouped }) });
  }
  let saved: SavedTraining;
  const split = optimizer && isSplit(optimizer) ? optimizer : null;
  const own = split ? {} : { optimizer: optimizer as SavableOptimizer };
  await together(parallel.group, owner, () => {
    using file = new SafetensorsFile(path);
    const header = headerOf(file);
    requireSaved(owner, path, header, parts);
    saved = loadTraining(path, { ...others, ...own });
    const { generator = defaultGenerator } = parts;
    generator.loadStateDict(generatorOfRank(header, parallel.group.rank));
  });
  if (split) await loadSplit(path, split);
  return saved!;
}

/** Each rank reads all of the state, and keeps its share. */
async function loadSplit(path: string, optimizer: SavableShardedOptimizer): Promise<void> {
  using file = new SafetensorsFile(path);
  const cpu = device('cpu');
  const sources = [...sourcesUnder('optimizer.', file)];
  const tensors = Object.fromEntries(
    scope(() => sources.map(([name, { read }]) => [name, keep(read(cpu))] as const)),
  );
  try {
    await optimizer.loadStateDict({ tensors, metadata: headerOf(file).optimizer! });
  } finally {
    for (const tensor of Object.values(tensors)) tensor.dispose();
  }
}

function checked(owner: string, path: string, parts: RankTrainingParts): RankTrainingParts {
  checkText(owner, 'the path', path);
  checkObject(owner, 'the training', parts);
  const { parallel, ...others } = parts;
  checkParts(owner, others as TrainingParts);
  checkObject(owner, 'parallel', parallel);
  checkObject(owner, 'group of parallel', parallel.group);
  checkFunction(owner, "allGatherObject of parallel's group", parallel.group.allGatherObject);
  if (!isSharded(parallel)) return parts;
  requireSharded(owner, parallel);
  checkFunction(owner, 'wholesOf of parallel', parallel.wholesOf);
  return parts;
}

function requireGroups(
  owner: string,
  optimizer: NonNullable<RankTrainingParts['optimizer']>,
): GroupedPartOptimizer {
  const { groups } = optimizer as Partial<GroupedPartOptimizer>;
  if (!isSplit(optimizer) && Array.isArray(groups)) return optimizer as GroupedPartOptimizer;
  throw new RooflineError(
    'ARGUMENT',
    `${owner}: the optimizer of a sharded model must be one of its parts, with \`groups\` as those of @roofline/optim, not ` +
      `${describeValue(optimizer)}.`,
  );
}

function isSharded(parallel: RankTrainingParts['parallel']): parallel is ShardedTraining {
  return 'parts' in parallel;
}

function isSplit(
  optimizer: SavableOptimizer | SavableShardedOptimizer,
): optimizer is SavableShardedOptimizer {
  return 'group' in optimizer;
}
