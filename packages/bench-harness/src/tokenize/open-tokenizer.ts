import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { UsageError } from '../errors.ts';
import { libraryTokenizer } from './library-tokenizer.ts';
import { tiktokenEndOfText, tokenizerOfRanks } from './tiktoken-ranks.ts';
import { type Tokenizer, bytesTokenizer } from './tokenizers.ts';

const jsonName = 'tokenizer.json';
/** What lies next to a tokenizer and tells of its special tokens. */
export const configName = 'tokenizer_config.json';
const ranksEnding = '.tiktoken';

/**
 * The tokenizer that `--tokenizer` names: `bytes`, a folder of a model, a tokenizer.json, or a file of tiktoken's ranks. Throws a UsageError
 * for what is none of these.
 */
export function openTokenizer(named: string): Tokenizer {
  if (named === 'bytes') return bytesTokenizer;
  const file = resolve(fileOf(named));
  const configFile = join(dirname(file), configName);
  const config = existsSync(configFile) ? readJson(configFile) : {};
  const endOfText = endOfTextIn(config);
  return file.endsWith(ranksEnding)
    ? libraryTokenizer({
        file,
        json: tokenizerOfRanks(file),
        config: {},
        endOfText: endOfText ?? tiktokenEndOfText,
      })
    : libraryTokenizer({ file, json: readJson(file), config, endOfText });
}

/** Whether a folder holds a tokenizer that `openTokenizer` reads. */
export function hasTokenizer(folder: string): boolean {
  return tokenizersIn(folder).length > 0;
}

function fileOf(named: string): string {
  const there = statSync(named, { throwIfNoEntry: false });
  if (there === undefined)
    throw new UsageError(
      `--tokenizer ${named} does not exist; it is 'bytes', a folder, a tokenizer.json or a file of ranks (NAME.tiktoken).`,
    );
  if (!there.isDirectory()) return named;
  const [found] = tokenizersIn(named);
  if (found !== undefined) return join(named, found);
  throw new UsageError(
    `--tokenizer ${named} has neither ${jsonName} nor a file of ranks (NAME${ranksEnding}). Python's AutoTokenizer makes the first of others: ` +
      'AutoTokenizer.from_pretrained(...).save_pretrained(FOLDER).',
  );
}

/** The name under which a folder holds a tokenizer's file: that of ranks says what they are of. */
export function nameInFolder(file: string): string {
  return file.endsWith(ranksEnding) ? basename(file) : jsonName;
}

/** The names of tokenizers in a folder, the one to take first. */
export function tokenizersIn(folder: string): string[] {
  if (existsSync(join(folder, jsonName))) return [jsonName];
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((name) => name.endsWith(ranksEnding));
}

function readJson(path: string): object {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new UsageError(`--tokenizer: ${path} cannot be read as JSON: ${(cause as Error).message}.`, {
      cause,
    });
  }
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed;
  throw new UsageError(`--tokenizer: ${path} must hold a JSON object.`);
}

/** A text, or an added token, as `transformers` writes it. */
function endOfTextIn(config: { readonly eos_token?: unknown }): string | null {
  const token = config.eos_token as string | { readonly content?: string } | null | undefined;
  return typeof token === 'object' ? (token?.content ?? null) : (token ?? null);
}
