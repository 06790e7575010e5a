import { readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type SavedTraining, describeTraining } from '@roofline/transformer';
import { RooflineError } from '@roofline/tensor-core';
import { UsageError } from '../errors.ts';
import { trainSettings, type TrainSettings } from './settings.ts';

const pattern = /^step-(\d+)\.safetensors$/;
/** Under which a checkpoint has the settings of its training. */
const settingsKey = 'roofline.train';

/** A checkpoint that a training can go on from. */
export interface Checkpoint {
  readonly path: string;
  /** The folder of its training. */
  readonly folder: string;
  /** Steps made. */
  readonly step: number;
  readonly settings: TrainSettings;
}

/** The checkpoints of a folder with the steps that they have made, the newest first. */
export function checkpointsIn(folder: string): { readonly path: string; readonly step: number }[] {
  const names = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : [];
  return names
    .flatMap((name) => {
      const [, step] = pattern.exec(name) ?? [];
      return step === undefined ? [] : [{ path: join(folder, name), step: Number(step) }];
    })
    .sort((a, b) => b.step - a.step);
}

export function checkpointPath(folder: string, step: number): string {
  return join(folder, `step-${String(step).padStart(7, '0')}.safetensors`);
}

/** What a checkpoint holds besides the training's own state: the same text for the same settings, whatever their order. */
export function metadataOf(settings: TrainSettings): Record<string, string> {
  return { [settingsKey]: JSON.stringify(trainSettings.parse(settings)) };
}

/**
 * The checkpoint that `path` is, or the newest of that folder. Throws a UsageError for none, and for a damaged one, which names the
 * one before.
 */
export function findCheckpoint(path: string): Checkpoint {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  const [newest, before] = isFolder ? checkpointsIn(path) : [{ path }];
  if (newest === undefined)
    throw new UsageError(
      `${path} holds no checkpoint; name a folder that \`roofline train\` has written to.`,
    );
  const { step, metadata } = describe(newest.path, before?.path);
  return {
    ...{ path: newest.path, folder: isFolder ? path : dirname(path), step },
    settings: settingsOf(newest.path, metadata),
  };
}

function describe(path: string, before: string | undefined): SavedTraining {
  try {
    return describeTraining(path);
  } catch (cause) {
    if (!(cause instanceof RooflineError)) throw cause;
    const remedy = before === undefined ? '' : ` Go on from the one before, ${before}.`;
    throw new UsageError(`${cause.message}${remedy}`, { cause });
  }
}

function settingsOf(path: string, metadata: SavedTraining['metadata']): TrainSettings {
  const text = metadata[settingsKey];
  if (text === undefined)
    throw new UsageError(
      `${path} is of a training of your own; \`roofline train\` goes on with its own alone.`,
    );
  const parsed = trainSettings.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  const { path: place, message } = parsed.error.issues[0]!;
  throw new UsageError(
    `${path} is of another release: its settings have ${place.join('.')} otherwise (${message}).`,
  );
}

/** Removes all checkpoints but the newest. */
export function pruneCheckpoints(folder: string, keep: number): void {
  for (const { path } of checkpointsIn(folder).slice(keep)) rmSync(path, { force: true });
}

/** Gives the names of later checkpoints free: a training that goes on before them makes them anew. Returns their new names. */
export function setAsideAfter({ folder, step }: Checkpoint): string[] {
  return checkpointsIn(folder)
    .filter((later) => later.step > step)
    .map(({ path }) => {
      renameSync(path, `${path}.old`);
      return basename(`${path}.old`);
    });
}
