import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Device, Generator, RooflineError } from '@roofline/tensor-core';
import {
  type GenerationDefaults,
  TransformerLM,
  loadPretrained,
  loadTraining,
  readPretrainedConfig,
} from '@roofline/transformer';
import { attentionFunction } from '../attention/attention-function.ts';
import { UsageError } from '../errors.ts';
import type { BenchmarkDType } from '../measuring/ceilings.ts';
import { keptTokenizer } from '../tokenize/kept-tokenizer.ts';
import { hasTokenizer, openTokenizer } from '../tokenize/open-tokenizer.ts';
import { type Tokenizer, bytesTokenizer } from '../tokenize/tokenizers.ts';
import { findCheckpoint } from './run-folder.ts';

/** A model that writes texts, and its defaults for that. */
export interface Writer {
  readonly model: TransformerLM;
  readonly tokenizer: Tokenizer;
  readonly defaults: GenerationDefaults;
  /** Whether a prompt begins as the tokenizer's texts do: with the token that models of Hugging Face have seen there. */
  readonly begins: boolean;
}

/** Options of both ways to open one. */
export interface WriterOptions {
  /** Null when interrupted. */
  openDevice(): Promise<Device | null>;
  /** What `--tokenizer` names, in place of the model's own. */
  readonly tokenizer?: string;
}

const fewTokens = { maxNewTokens: 500 } as const;

/** A training's model, of its folder or of a checkpoint; null when interrupted. Throws a UsageError where no tokenizer of its vocabulary is there. */
export async function openTrained(
  path: string,
  { openDevice, tokenizer: named }: WriterOptions,
): Promise<Writer | null> {
  const { path: file, settings } = findCheckpoint(path);
  const { model: shape, context: contextLength } = settings;
  const tokenizer = tokenizerOfTraining(file, shape.shape.vocabularySize, named);
  const device = await openDevice();
  if (device === null) return null;
  const attention = attentionFunction(settings.attention);
  const model = new TransformerLM({ ...shape.shape, contextLength }, { device, attention });
  // The generator of this process is no part of what is asked for.
  loadTraining(file, { model, generator: new Generator(0) });
  return {
    model,
    tokenizer,
    defaults: { ...fewTokens, temperature: 0.8, ...stopOf(tokenizer) },
    begins: false,
  };
}

function tokenizerOfTraining(file: string, vocabularySize: number, named: string | undefined): Tokenizer {
  const kept = keptTokenizer(dirname(file));
  const found = named ?? (existsSync(kept) ? kept : undefined);
  if (found !== undefined) return fitting(openTokenizer(found), vocabularySize, file);
  if (vocabularySize === bytesTokenizer.vocabularySize) return bytesTokenizer;
  throw new UsageError(
    `${file} is of a vocabulary of ${vocabularySize} tokens, and there is no ${kept}: name its tokenizer by --tokenizer.`,
  );
}

/** A folder of Hugging Face, with its tokenizer; null when interrupted. Throws a UsageError for one without, or whose model cannot be read. */
export async function openFolder(
  folder: string,
  { openDevice, tokenizer: named, dtype: givenDType }: WriterOptions & { readonly dtype?: BenchmarkDType },
): Promise<Writer | null> {
  if (!(statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false))
    throw new UsageError(`--model ${folder} is no folder: name one with config.json and model.safetensors.`);
  if (named === undefined && !hasTokenizer(folder))
    throw new UsageError(
      `--model ${folder} has no tokenizer.json: name its tokenizer by --tokenizer, or 'bytes'.`,
    );
  const { vocabularySize } = orWrongUsage(() => readPretrainedConfig(folder)).config;
  const tokenizer = fitting(openTokenizer(named ?? folder), vocabularySize, join(folder, 'config.json'));
  const device = await openDevice();
  if (device === null) return null;
  const isGpu = device.type === 'cuda';
  const dtype = givenDType ?? (isGpu ? 'bfloat16' : 'float32');
  const attention = attentionFunction(isGpu ? 'flash' : 'plain');
  const { model, generation } = orWrongUsage(() => loadPretrained(folder, { device, dtype, attention }));
  return {
    model,
    tokenizer,
    defaults: { ...fewTokens, temperature: 0, ...stopOf(tokenizer), ...generation },
    begins: true,
  };
}

function stopOf({ endOfText }: Tokenizer): GenerationDefaults {
  return endOfText === null ? {} : { stopToken: endOfText };
}

/** Throws a UsageError for a tokenizer with tokens that the model does not know. */
function fitting(tokenizer: Tokenizer, vocabularySize: number, of: string): Tokenizer {
  if (tokenizer.vocabularySize <= vocabularySize) return tokenizer;
  throw new UsageError(
    `The tokenizer ${tokenizer.file ?? 'bytes'} has ${tokenizer.vocabularySize} tokens, more than the ${vocabularySize} of ${of}: ` +
      'name the one that the model was trained with by --tokenizer.',
  );
}

/** Of a folder that does not hold such a model. */
function orWrongUsage<T>(load: () => T): T {
  try {
    return load();
  } catch (cause) {
    if (
      !(cause instanceof RooflineError) ||
      !['PRETRAINED_CONFIG', 'SAFETENSORS', 'STATE'].includes(cause.code)
    )
      throw cause;
    throw new UsageError(cause.message, { cause });
  }
}
