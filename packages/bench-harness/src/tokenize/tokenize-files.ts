import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type TokenFileHeader, isTokenFile, writeTokens } from '@roofline/transformer';
import { UsageError } from '../errors.ts';
import { tokenizerMetadata } from './kept-tokenizer.ts';
import type { Tokenizer } from './tokenizers.ts';

const pieceBytes = 4 * 2 ** 20;

/** What becomes of the texts. */
export interface TokenizeSettings {
  readonly tokenizer: Tokenizer;
  /** The token after each text; null for none. */
  readonly endOfText: number | null;
}

/** Looks on while files are tokenized. */
export interface TokenizeObserver {
  /** A run before was killed: the part that it left is removed, and the work begins anew. */
  restarted(): void;
  /** How many bytes of all texts have been read, before each further piece of `file`. */
  progressed(file: string, doneBytes: number, totalBytes: number): void;
}

/**
 * Writes the tokens of texts, in the order of `files`, to one file of tokens; holds a few MB of them at a time. Throws a UsageError for
 * what is no file, for texts without any byte, and for an `out` that is a text among them or any other file than one of tokens; a
 * file of tokens is replaced once the new one is whole.
 */
export function tokenizeFiles(
  files: readonly string[],
  out: string,
  settings: TokenizeSettings,
  observer: TokenizeObserver,
): TokenFileHeader {
  const { vocabularySize } = settings.tokenizer;
  const totalBytes = files.map(sizeOfText).reduce((sum, size) => sum + size, 0);
  checkTarget(out, files);
  if (totalBytes === 0) throw new UsageError(`${files.join(', ')}: there is no byte in it, and so no token.`);
  return writeTokens(
    out,
    tokensOf(files, settings, (...now) => observer.progressed(...now, totalBytes)),
    { vocabularySize, metadata: tokenizerMetadata(settings), onRestart: () => observer.restarted() },
  );
}

function* tokensOf(
  files: readonly string[],
  { tokenizer, endOfText }: TokenizeSettings,
  progressed: (file: string, doneBytes: number) => void,
): Generator<ArrayLike<number>> {
  let doneBytes = 0;
  const read = (file: string, bytes: number) => {
    progressed(file, doneBytes);
    doneBytes += bytes;
  };
  for (const file of files) {
    yield* tokenizer.tokensOf(
      piecesOf(file, (bytes) => read(file, bytes)),
      file,
    );
    if (endOfText !== null) yield [endOfText];
  }
}

function* piecesOf(path: string, onRead: (bytes: number) => void): Generator<Uint8Array> {
  const file = openSync(path, 'r');
  try {
    const piece = new Uint8Array(pieceBytes);
    for (let count = readSync(file, piece); count > 0; count = readSync(file, piece)) {
      onRead(count);
      yield piece.subarray(0, count);
    }
  } finally {
    closeSync(file);
  }
}

function sizeOfText(path: string): number {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there === undefined) throw new UsageError(`${path} does not exist.`);
  if (!there.isFile()) throw new UsageError(`${path} is no regular file; name the texts one by one.`);
  if (holdsTokens(path)) throw new UsageError(`${path} is a file of tokens, not a text.`);
  return there.size;
}

function checkTarget(out: string, files: readonly string[]): void {
  if (!existsSync(dirname(out)))
    throw new UsageError(`--out ${out} is in a folder that does not exist: make it, or name another.`);
  if (!existsSync(out)) return;
  const target = realpathSync(out);
  if (files.some((file) => realpathSync(file) === target))
    throw new UsageError(`--out ${out} is one of the texts, and would take its place: name another file.`);
  if (!statSync(out).isFile()) throw new UsageError(`--out ${out} is no regular file: name a file to write.`);
  if (!holdsTokens(out))
    throw new UsageError(`--out ${out} is there and is no file of tokens: remove it, or name another file.`);
}

/** Throws a UsageError for a file that cannot be read. */
function holdsTokens(path: string): boolean {
  try {
    return isTokenFile(path);
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause });
  }
}
