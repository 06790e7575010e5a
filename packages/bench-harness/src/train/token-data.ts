import { readFileSync, statSync } from 'node:fs';
import { RooflineError } from '@roofline/tensor-core';
import { TokenFile, type TokenSource, byteTokens, isTokenFile } from '@roofline/transformer';
import { UsageError } from '../errors.ts';

/** Longer texts are read where they are needed, from a file of tokens. */
const longestText = 2 ** 30;

/** The tokens of a file of them, or the bytes of a text. Throws a UsageError for what is neither. */
export function openTokens(path: string): TokenSource {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there === undefined) throw new UsageError(`--data ${path} does not exist.`);
  try {
    if (isTokenFile(path)) return new TokenFile(path);
  } catch (cause) {
    if (cause instanceof RooflineError) throw new UsageError(cause.message, { cause });
    throw cause;
  }
  if (there.size === 0) throw new UsageError(`--data ${path} is empty.`);
  if (there.size > longestText) {
    throw new UsageError(
      `--data ${path} has more than 1 GiB: make a file of tokens of it, \`roofline tokenize ${path} --out data.bin\`.`,
    );
  }
  return { ...byteSource(path), name: path };
}

function byteSource(path: string): TokenSource {
  const { vocabularySize, length, fingerprint, read } = byteTokens(readFileSync(path));
  return { name: path, vocabularySize, length, fingerprint, read };
}
