import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import {
  RooflineError,
  type Tensor,
  checkOptions,
  checkText,
  describeValue,
  noGrad,
  scope,
} from '@roofline/tensor-core';
import type { AnyModule } from '../module/module.ts';
import { tiedNames } from './checkpoint.ts';
import { replaceFile } from './replace-file.ts';
import { type GatheringRanks, together } from './together.ts';
import { checkMetadata, SafetensorsError } from './safetensors-header.ts';
import { type TensorSource, writeSafetensors } from './safetensors.ts';
import { type PartPlace, StoredTensors, placesKey, refuseMisfits } from './sharded-parts.ts';
import {
  type Part,
  type PartOptimizer,
  loadParts,
  placeOf,
  stateKey,
  stateOfParts,
} from './sharded-state.ts';

/** What a sharded checkpoint is of: what `fullyShard` or `parallelize` of @roofline/collectives gives. */
export interface ShardedParameters {
  readonly module: AnyModule;
  readonly group: GatheringRanks;
  readonly shardGroup: { readonly rank: number; readonly size: number; readonly ranks: readonly number[] };
  parts(): Iterable<Part>;
  /** Of all parameters whole, in the order of `wholeParameters`. */
  shapes(): Iterable<readonly [name: string, shape: readonly number[]]>;
  wholeParameters(): Iterable<readonly [name: string, parameter: Tensor]>;
}

/** Options of `saveSharded`. */
export interface SaveShardedOptions {
  /** Whose state is saved too. */
  readonly optimizer?: PartOptimizer;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Options of `loadSharded`. */
export interface LoadShardedOptions {
  /** Whose state is loaded too. */
  readonly optimizer?: PartOptimizer;
}

/** Names of the files in a folder: what is whole, and the folders of versions. */
const latestFile = 'latest.json';
const versionFolder = /^version-\d+-[0-9a-f]{16}$/;

interface Latest {
  readonly version: string;
  readonly ranks: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Saves the parameters of a sharded model, and the state of its optimizer, into a folder that all ranks reach: each writes its own
 * parts. The checkpoint that was there stays until all of the new one is on the disk, whatever ends the processes
 * meanwhile; what they leave, the next call removes. A collective. Throws on all ranks what fails on one.
 */
export async function saveSharded(
  sharded: ShardedParameters,
  folder: string,
  options: SaveShardedOptions = {},
): Promise<void> {
  requireSharded('saveSharded', sharded);
  checkText('saveSharded', 'the folder', folder);
  checkOptions('saveSharded', options, ['optimizer', 'metadata']);
  const { optimizer, metadata = {} } = options;
  if (optimizer !== undefined) requireOptimizer('saveSharded', optimizer);
  checkMetadata('saveSharded', metadata);
  const { group, shardGroup } = sharded;
  const own = `version-${Date.now()}-${randomBytes(8).toString('hex')}`;
  const version = (await group.allGatherObject(own))[0]!;
  const isWriter = shardGroup.ranks.includes(group.ranks[0]!);
  await together(group, 'saveSharded', () => {
    if (!isWriter) return;
    mkdirSync(join(folder, version), { recursive: true });
    writeParts(sharded, join(folder, version, fileOf(shardGroup.rank, shardGroup.size)), optimizer);
  });
  await together(group, 'saveSharded', () => {
    if (group.rank > 0) return;
    writeLatest(folder, { version, ranks: shardGroup.size, metadata });
    removeVersions(folder, version);
  });
}

/**
 * Loads the parameters of a checkpoint into a sharded model, each rank its own parts: of a folder of `saveSharded`, whatever number of
 * ranks saved it, or of a safetensors file with whole tensors. A collective. Returns the metadata. Throws, on all ranks, a
 * StateError for a checkpoint of another model or a value beyond float32, a SafetensorsError for a damaged one, and what `optimizer`
 * throws; where the files do not fit, nothing has been written. A value beyond float32 is found as it is read, when parameters before it
 * have been loaded.
 */
export async function loadSharded(
  sharded: ShardedParameters,
  path: string,
  options: LoadShardedOptions = {},
): Promise<Readonly<Record<string, string>>> {
  requireSharded('loadSharded', sharded);
  checkText('loadSharded', 'the path', path);
  checkOptions('loadSharded', options, ['optimizer']);
  const { optimizer } = options;
  if (optimizer !== undefined) requireOptimizer('loadSharded', optimizer);
  let stored: StoredTensors | null = null;
  let metadata: Readonly<Record<string, string>> = {};
  try {
    await together(sharded.group, 'loadSharded', () => {
      const found = openStored(path);
      [stored, metadata] = [found.stored, found.metadata];
      const complaints = [...sharded.parts()].map((part) => found.stored.misfit(part.name, part));
      refuseMisfits(
        path,
        complaints.filter((complaint) => complaint !== null),
      );
    });
    await together(sharded.group, 'loadSharded', () => {
      for (const part of sharded.parts()) noGrad(() => scope(() => stored!.read(part.name, part, part.leaf)));
      if (optimizer) loadParts(path, optimizer, sharded.parts(), stored!);
    });
    return metadata;
  } finally {
    (stored as StoredTensors | null)?.close();
  }
}

/**
 * Writes all parameters whole into one safetensors file, as `saveCheckpoint` does; rank 0 writes, and no rank ever holds more than a
 * unit. A collective. Throws on all ranks what fails on rank 0.
 */
export async function saveWhole(
  sharded: ShardedParameters,
  path: string,
  metadata: Readonly<Record<string, string>> = {},
): Promise<void> {
  requireSharded('saveWhole', sharded);
  checkText('saveWhole', 'the path', path);
  checkMetadata('saveWhole', metadata);
  const wholes = sharded.wholeParameters()[Symbol.iterator]();
  const next = () => wholes.next().value as readonly [string, Tensor] | undefined;
  await together(sharded.group, 'saveWhole', () => {
    try {
      const { module } = sharded;
      if (sharded.group.rank === 0) writeWhole({ module, shapes: sharded.shapes() }, path, metadata, next);
    } finally {
      // What is gathered is gathered by all.
      while (next());
    }
  });
}

function writeWhole(
  {
    module,
    shapes,
  }: Pick<ShardedParameters, 'module'> & { readonly shapes: ReturnType<ShardedParameters['shapes']> },
  path: string,
  metadata: Readonly<Record<string, string>>,
  next: () => readonly [string, Tensor] | undefined,
): void {
  // Each is gathered when its turn comes, in this order.
  const sources = [...shapes].map(([name, shape]): TensorSource => ({
    name,
    dtype: 'float32',
    shape,
    read: () => bytesOf(next()![1]),
  }));
  writeSafetensors(path, sources, { format: 'pt', ...metadata, ...tiedNames(module) });
}

/** The parts of one rank, and of its optimizer's state, in a file that says where each belongs. */
function writeParts(sharded: ShardedParameters, path: string, optimizer: PartOptimizer | undefined): void {
  const places: Record<string, PartPlace> = {};
  const own = [...sharded.parts()].filter(({ isCopy }) => !isCopy);
  const sources = own.map((part): TensorSource => {
    places[part.name] = placeOf(part);
    return sourceOf(part.name, part.leaf);
  });
  if (!optimizer) {
    writeSafetensors(path, sources, { [placesKey]: JSON.stringify(places) });
    return;
  }
  scope(() => {
    const { tensors, texts } = stateOfParts(optimizer, sharded.parts());
    for (const [name, { tensor, ...place }] of tensors) {
      places[name] = place;
      sources.push(sourceOf(name, tensor));
    }
    writeSafetensors(path, sources, {
      [placesKey]: JSON.stringify(places),
      [stateKey]: JSON.stringify(texts),
    });
  });
}

function sourceOf(name: string, tensor: Tensor): TensorSource {
  const { dtype, shape } = tensor;
  return { name, dtype, shape, read: () => bytesOf(tensor) };
}

function bytesOf(tensor: Tensor): Uint8Array {
  const { buffer, byteOffset, byteLength } = tensor.toTypedArray();
  return new Uint8Array(buffer, byteOffset, byteLength);
}

const fileOf = (rank: number, ranks: number) => `rank-${rank}-of-${ranks}.safetensors`;

function writeLatest(folder: string, latest: Latest): void {
  const text = Buffer.from(JSON.stringify(latest));
  replaceFile(
    join(folder, latestFile),
    (file) => void writeSync(file, text),
    (reason) => new SafetensorsError(`saveSharded: ${reason}`),
  );
}

/** What other calls have left, and the checkpoint before. */
function removeVersions(folder: string, but: string): void {
  for (const name of readdirSync(folder))
    if (versionFolder.test(name) && name !== but)
      rmSync(join(folder, name), { recursive: true, force: true });
}

/** A folder of `saveSharded`, or a file of whole tensors. */
function openStored(path: string): { stored: StoredTensors; metadata: Readonly<Record<string, string>> } {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) {
    const stored = new StoredTensors([path]);
    return { stored, metadata: stored.metadata };
  }
  const { version, ranks, metadata } = readLatest(path);
  const files = Array.from({ length: ranks }, (_, rank) => join(path, version, fileOf(rank, ranks)));
  return { stored: new StoredTensors(files), metadata };
}

function readLatest(folder: string): Latest {
  const path = join(folder, latestFile);
  let latest: Partial<Latest> | null;
  try {
    latest = JSON.parse(readFileSync(path, 'utf8')) as Partial<Latest> | null;
  } catch (cause) {
    const message = `loadSharded: ${folder} holds no checkpoint of saveSharded: ${(cause as Error).message}.`;
    throw new SafetensorsError(message, { cause });
  }
  const { version, ranks, metadata = {} } = latest ?? {};
  if (typeof version === 'string' && versionFolder.test(version) && Number.isSafeInteger(ranks))
    return { version, ranks: ranks!, metadata };
  throw new SafetensorsError(`loadSharded: ${path} is damaged: it names no version; save anew.`);
}

export function requireSharded(owner: string, sharded: ShardedParameters): void {
  const isSharded = ['parts', 'shapes', 'wholeParameters'].every(
    (method) => typeof sharded?.[method as 'parts'] === 'function',
  );
  if (isSharded) return;
  throw new RooflineError(
    'ARGUMENT',
    `${owner}: takes what fullyShard() or parallelize() gave, not ${describeValue(sharded)}.`,
  );
}

function requireOptimizer(owner: string, optimizer: PartOptimizer): void {
  const methods = ['parameters', 'stateDict', 'loadStateDict'] as const;
  if (methods.every((method) => typeof optimizer?.[method] === 'function')) return;
  throw new RooflineError(
    'ARGUMENT',
    `${owner}: takes an optimizer, with ${methods.join('(), ')}(), not ${describeValue(optimizer)}.`,
  );
}
