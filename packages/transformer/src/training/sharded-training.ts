import { type Tensor, defaultGenerator, noGrad, scope } from '@roofline/tensor-core';
import type { ShardedParameters } from '../checkpoint/sharded-checkpoint.ts';
import { StoredTensors, refuseMisfits } from '../checkpoint/sharded-parts.ts';
import {
  type Part,
  type PartOptimizer,
  type StateTexts,
  type StoredStates,
  listOf,
  loadParts,
  nameOf,
  stateOfParts,
  whatOf,
} from '../checkpoint/sharded-state.ts';
import { type TensorSource, writeSafetensors } from '../checkpoint/safetensors.ts';
import { together } from '../checkpoint/together.ts';
import { gatherGenerators, generatorOfRank } from './rank-generators.ts';
import {
  type Header,
  type SavedTraining,
  type TrainingParts,
  type TrainingPlace,
  headerOf,
  metadataOf,
  placeOf,
  requireSaved,
} from './training-file.ts';

// The file of a training whose parameters are split over ranks: the one that a single process writes.

/** A model whose parameters are split over ranks, whose states can be had whole: what `fullyShard` of @roofline/collectives gives. */
export interface ShardedTraining extends ShardedParameters {
  wholesOf(of: (part: Part) => Tensor | null): Iterable<readonly [name: string, whole: Tensor]>;
}

/** An optimizer of parts that numbers parameters group by group. */
export interface GroupedPartOptimizer extends PartOptimizer {
  readonly groups: readonly { readonly parameters: Iterable<Tensor> }[];
}

interface ShardedParts extends Omit<TrainingParts, 'optimizer'> {
  readonly parallel: ShardedTraining;
  readonly optimizer?: GroupedPartOptimizer;
}

/** What one rank can say of the optimizer of all. */
interface OptimizerShare {
  /** The names of the parameters of each group. */
  readonly groups: readonly (readonly string[])[];
  /** The names of its moments, as `nameOf` makes them. */
  readonly tensors: readonly string[];
  readonly texts: StateTexts;
}

export async function saveShardedTraining(
  path: string,
  { parallel, optimizer, ...others }: ShardedParts,
  place: TrainingPlace,
): Promise<void> {
  const { group } = parallel;
  const shares = optimizer ? await group.allGatherObject(shareOf(parallel, optimizer)) : [];
  const generators = await gatherGenerators(group, others.generator ?? defaultGenerator);
  const numbers = numbersOf(parallel, shares);
  // Parameters that have made no step, such as frozen ones, have none.
  const moments = new Set(shares.flatMap(({ tensors }) => tensors));
  const whats = [...new Set([...moments].flatMap((name) => whatOf(name) ?? []))];
  await together(group, 'saveTrainingOnRanks', () => {
    const wholes = wholesOf(parallel, optimizer, whats, moments);
    try {
      if (group.rank > 0) return;
      const texts = optimizer && numberedTexts(shares, numbers);
      const metadata = metadataOf(others, place, texts, generators);
      const shapes = [...parallel.shapes()];
      const sourceOf = (name: string, shape: readonly number[]): TensorSource => ({
        ...{ name, dtype: 'float32', shape },
        read: () => bytesOf(wholes.next().value as Tensor),
      });
      // In the order in which they are gathered.
      const sources = [
        ...shapes.map(([name, shape]) => sourceOf(`model.${name}`, shape)),
        ...whats.flatMap((what) =>
          shapes
            .filter(([name]) => moments.has(nameOf(what, name)))
            .map(([name, shape]) => sourceOf(`optimizer.${what}.${numbers.get(name)!}`, shape)),
        ),
      ];
      writeSafetensors(path, sources, metadata);
    } finally {
      // What is gathered is gathered by all.
      while (!wholes.next().done);
    }
  });
}

/** All parameters whole, one after the other, then the moments of each kind that there are. */
function* wholesOf(
  parallel: ShardedTraining,
  optimizer: GroupedPartOptimizer | undefined,
  whats: readonly string[],
  moments: ReadonlySet<string>,
): Generator<Tensor, void> {
  for (const [, parameter] of parallel.wholeParameters()) yield parameter;
  if (!optimizer) return;
  const { tensors } = stateOfParts(optimizer, parallel.parts());
  try {
    for (const what of whats) {
      const ofPart = ({ name }: Part) => tensors.get(nameOf(what, name))?.tensor ?? null;
      for (const [name, moment] of parallel.wholesOf(ofPart))
        if (moments.has(nameOf(what, name))) yield moment;
    }
  } finally {
    for (const { tensor } of tensors.values()) tensor.dispose();
  }
}

function bytesOf(tensor: Tensor): Uint8Array {
  const { buffer, byteOffset, byteLength } = tensor.toTypedArray();
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function shareOf(parallel: ShardedTraining, optimizer: GroupedPartOptimizer): OptimizerShare {
  return scope(() => {
    const nameOfLeaf = new Map([...parallel.parts()].map(({ name, leaf }) => [leaf, name]));
    const { tensors, texts } = stateOfParts(optimizer, parallel.parts());
    return {
      groups: optimizer.groups.map(({ parameters }) =>
        [...parameters].flatMap((leaf) => nameOfLeaf.get(leaf) ?? []),
      ),
      tensors: [...tensors.keys()],
      texts,
    };
  });
}

/** The number of each parameter in the state of an optimizer that has all of them, which counts through its groups. */
function numbersOf(
  { module }: ShardedTraining,
  shares: readonly OptimizerShare[],
): ReadonlyMap<string, number> {
  const groupOf = new Map(
    shares.flatMap(({ groups }) => groups.flatMap((names, i) => names.map((name) => [name, i] as const))),
  );
  const names = [...module.namedParameters()].map(([name]) => name).filter((name) => groupOf.has(name));
  const inOrder = names.toSorted((a, b) => groupOf.get(a)! - groupOf.get(b)!);
  return new Map(inOrder.map((name, number) => [name, number]));
}

/** The text of the whole state: lists have an entry for each number. */
function numberedTexts(
  shares: readonly OptimizerShare[],
  numbers: ReadonlyMap<string, number>,
): Record<string, string> {
  const all = shares.map(({ texts }) => texts);
  const keys = new Set(all.flatMap(({ ofParameters }) => Object.keys(ofParameters)));
  const lists = [...keys].map((key) => {
    const entries = Object.assign({}, ...all.map(({ ofParameters }) => ofParameters[key])) as Record<
      string,
      unknown
    >;
    return [key, JSON.stringify([...numbers.keys()].map((name) => entries[name]))];
  });
  return { ...all[0]!.common, ...Object.fromEntries(lists) };
}

export async function loadShardedTraining(
  path: string,
  { parallel, optimizer, scaler, data, generator = defaultGenerator }: ShardedParts,
): Promise<SavedTraining> {
  const { group } = parallel;
  const share = optimizer && shareOf(parallel, optimizer);
  const numbers = numbersOf(parallel, share ? await group.allGatherObject(share) : []);
  let saved: SavedTraining;
  await together(group, 'loadTrainingOnRanks', () => {
    using stored = new StoredTensors([path]);
    const header = headerOf({ path, metadata: stored.metadata });
    requireSaved('loadTrainingOnRanks', path, header, { optimizer, scaler, data });
    const complaints = [...parallel.parts()].map((part) => stored.misfit(`model.${part.name}`, part));
    refuseMisfits(
      path,
      complaints.filter((complaint) => complaint !== null),
    );
    data?.load(header.data as never);
    for (const part of parallel.parts())
      noGrad(() => scope(() => stored.read(`model.${part.name}`, part, part.leaf)));
    if (optimizer) loadParts(path, optimizer, parallel.parts(), byNames(stored, header.optimizer!, numbers));
    scaler?.loadStateDict(header.scaler as never);
    generator.loadStateDict(generatorOfRank(header, group.rank));
    saved = placeOf({ path, metadata: stored.metadata }, header);
  });
  return saved!;
}

/** The states of a file, which numbers parameters, by their names. */
function byNames(
  stored: StoredTensors,
  optimizer: NonNullable<Header['optimizer']>,
  numbers: ReadonlyMap<string, number>,
): StoredStates {
  const numbered = new Map<string, string>();
  const there = new Set(stored.names);
  const whats = new Set(stored.names.flatMap((name) => /^optimizer\.(.*)\.\d+$/.exec(name)?.[1] ?? []));
  for (const what of whats)
    for (const [name, number] of numbers) {
      const key = `optimizer.${what}.${number}`;
      if (there.has(key)) numbered.set(nameOf(what, name), key);
    }
  const common: Record<string, string> = {};
  const ofParameters: Record<string, Record<string, unknown>> = {};
  for (const [key, text] of Object.entries(optimizer)) {
    const list = listOf(text, numbers.size);
    if (list === null) common[key] = text;
    else ofParameters[key] = Object.fromEntries([...numbers].map(([name, number]) => [name, list[number]]));
  }
  const texts: StateTexts = { common, ofParameters };
  return {
    names: [...numbered.keys()],
    texts: () => [JSON.stringify(texts)],
    misfit: (name, place) => stored.misfit(numbered.get(name) ?? name, place),
    read: (name, place, target) => stored.read(numbered.get(name)!, place, target),
  };
}
