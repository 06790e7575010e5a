import { resolve } from 'node:path';
import { TokenFile, type TokenSource } from '@roofline/transformer';
import { UsageError } from '../errors.ts';
import { type PreparedDevice, openDevice, prepareDevice } from '../device/prepare-device.ts';
import { type RankBackend, chooseBackend, requireBackend } from '../device/require-backend.ts';
import { tellSentence } from '../cli/print-sentence.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import { chooseModels, modelFlags } from '../model/flags.ts';
import type { NamedModel } from '../model/shape.ts';
import { lockFolder } from '../records/folder-lock.ts';
import { makeWritable } from '../records/results-folder.ts';
import { keepTokenizer } from '../tokenize/kept-tokenizer.ts';
import { type Checkpoint, checkpointsIn, findCheckpoint, setAsideAfter } from './run-folder.ts';
import {
  type ChangedSettings,
  type GivenSettings,
  type TrainSettings,
  beginWith,
  goOnWith,
  scheduleInWords,
} from './settings.ts';
import { openTokens } from './token-data.ts';
import { type TrainArguments, givenSettings } from './train-flags.ts';

/** A training that can begin or go on; its folder is locked until it is disposed. */
export interface PreparedTraining extends Disposable {
  readonly settings: TrainSettings;
  readonly folder: string;
  readonly checkpoint: Checkpoint | null;
  readonly source: TokenSource;
  readonly environment: PreparedDevice['environment'];
  /** What connects its ranks; null for this process alone. */
  readonly backend: RankBackend | null;
  readonly peakFlopsPerSecond: number | null;
}

/** Null when interrupted. Throws a UsageError for what is not there, and for flags that do not go together. */
export async function prepareTraining(
  args: TrainArguments,
  signal: AbortSignal,
): Promise<PreparedTraining | null> {
  const checkpoint = args.resume === undefined ? null : findCheckpoint(args.resume);
  const folder = folderOf(args, checkpoint);
  const backend = await backendOf(args, args.nproc ?? checkpoint?.settings.ranks ?? 1);
  const source = openTokens(dataOf(args, checkpoint));
  const model = await modelOf(args, source, checkpoint);
  const given = { ...givenSettings(args), ...(model && { model }), data: resolve(source.name) };
  using progress = new ProgressDisplay();
  const onStatus = (...now: Parameters<ProgressDisplay['status']>) => progress.status(...now);
  const deviceSpec = { gloo: 'cpu', nccl: 'cuda', none: args.device }[backend ?? 'none'];
  onStatus(`Opening the device ${deviceSpec}`);
  const device = await openDevice(deviceSpec, { signal });
  if (device === null) return null;
  const { settings, changes } = settingsOf(given, model, checkpoint, device.type);
  const prepared = await prepareDevice(device.label, [settings.dtype], { signal, onStatus });
  if (prepared === null) return null;
  makeWritable(folder);
  const unlock = lockFolder(folder);
  progress.clear();
  if (checkpoint !== null) tellHowItGoesOn(checkpoint, changes);
  if (backend !== null) tellRanks(settings, backend);
  const begins = checkpoint === null;
  const ofTokenizer = keepTokenizer(source instanceof TokenFile ? source.metadata : {}, folder, { begins });
  if (ofTokenizer !== null) tellSentence(ofTokenizer);
  const ofSchedule = scheduleInWords(settings);
  if (ofSchedule !== null) tellSentence(ofSchedule);
  const peakFlopsPerSecond = prepared.ceilings?.matmulFlopsPerSecond[settings.dtype] ?? null;
  return {
    ...{ settings, folder, checkpoint, source, environment: prepared.environment, backend },
    // Ranks of the CPU share it.
    peakFlopsPerSecond: peakFlopsPerSecond && peakFlopsPerSecond * (backend === 'nccl' ? settings.ranks : 1),
    [Symbol.dispose]() {
      (source as Partial<Disposable>)[Symbol.dispose]?.();
      unlock();
    },
  };
}

/** Throws a UsageError for what cannot connect so many ranks here. */
async function backendOf(
  { backend: given, device }: TrainArguments,
  ranks: number,
): Promise<RankBackend | null> {
  // A backend that is asked for connects a single rank too.
  if (ranks === 1 && given === undefined) return null;
  const backend = await chooseBackend({ given, device, ranks });
  await requireBackend(backend);
  if (backend === 'gloo') return backend;
  const { cudaDeviceCount } = await import('@roofline/tensor-core');
  const gpus = cudaDeviceCount();
  if (ranks <= gpus) return backend;
  throw new UsageError(
    `--nproc ${ranks} with --backend nccl wants a GPU for each rank, and there ${gpus === 1 ? 'is 1' : `are ${gpus}`} here: take fewer ` +
      'ranks, or --backend gloo on the CPU.',
  );
}

function folderOf({ out, resume }: TrainArguments, checkpoint: Checkpoint | null): string {
  if (checkpoint !== null) {
    if (out === undefined || out === checkpoint.folder) return checkpoint.folder;
    throw new UsageError(
      `--resume ${resume} goes on in its own folder: leave out --out ${out}, or copy the folder.`,
    );
  }
  if (out === undefined) throw new UsageError('--out is needed: the folder of checkpoints and log.');
  const [newest] = checkpointsIn(out);
  if (newest === undefined) return out;
  throw new UsageError(
    `--out ${out} holds a training of ${newest.step} steps: go on with it by --resume ${out}, or take another --out.`,
  );
}

function dataOf({ data }: TrainArguments, checkpoint: Checkpoint | null): string {
  const path = data ?? checkpoint?.settings.data;
  if (path !== undefined) return path;
  throw new UsageError('--data is needed: a text, or a file of `roofline tokenize`.');
}

/** The model that flags name, with the vocabulary of the data; null where a training goes on with its own. */
async function modelOf(
  args: TrainArguments,
  { name, vocabularySize }: TokenSource,
  checkpoint: Checkpoint | null,
): Promise<NamedModel | null> {
  const isNamed = Object.keys(modelFlags).some((flag) => args[flag as keyof typeof modelFlags] !== undefined);
  if (checkpoint !== null && !isNamed) return null;
  const { vocab = vocabularySize } = args;
  if (vocab < vocabularySize)
    throw new UsageError(`--vocab ${vocab} is less than the vocabulary of ${name}, ${vocabularySize}.`);
  const models = await chooseModels({ ...args, vocab }, 'small');
  if (models.length > 1) throw new UsageError('`roofline train` trains one size at a time.');
  return models[0]!;
}

function settingsOf(
  given: GivenSettings & { data: string },
  model: NamedModel | null,
  checkpoint: Checkpoint | null,
  deviceType: 'cpu' | 'cuda',
): ChangedSettings {
  if (checkpoint !== null) return goOnWith(checkpoint.settings, given, checkpoint.step);
  return { settings: beginWith({ ...given, model: model! }, deviceType), changes: [] };
}

function tellRanks({ ranks, mode }: TrainSettings, backend: RankBackend): void {
  const place = backend === 'nccl' ? 'each on a GPU' : 'on the CPU';
  tellSentence(
    `${ranks === 1 ? '1 rank' : `${ranks} ranks`}, ${place}, connected by ${backend}, --mode ${mode}.`,
  );
}

function tellHowItGoesOn(checkpoint: Checkpoint, changes: readonly string[]): void {
  const aside = setAsideAfter(checkpoint);
  const later = aside.length > 0 ? ` Later checkpoints are kept as ${aside.join(', ')}.` : '';
  const changed = changes.length > 0 ? `, with ${changes.join(', ')}` : '';
  tellSentence(`Going on from step ${checkpoint.step.toLocaleString('en')}${changed}.${later}`);
}
