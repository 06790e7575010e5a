import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type TokenFileHeader, TokenFileWriter, isTokenFile } from '@roofline/transformer';
import { UsageError } from '../errors.ts';
import { EncodeThreads, countThreads } from './encode-threads.ts';
import { tokenizerMetadata } from './kept-tokenizer.ts';
import { describeJob } from './tokenize-job.ts';
import type { TextChunk, TokenizeSettings, Tokenizer } from './tokenizers.ts';

const pieceBytes = 2 ** 20;

/** Looks on while files are tokenized. */
export interface TokenizeObserver {
  /** A run before was killed: its work is gone on with after `doneBytes` of all texts, or, where that is null, begun anew. */
  restarted(doneBytes: number | null): void;
  /** How many bytes of all texts have become tokens, as far as some of `file`. */
  progressed(file: string, doneBytes: number, totalBytes: number): void;
}

interface Text {
  readonly path: string;
  readonly bytes: number;
  /** What the places in it begin with: it has one for each byte, and one after the token that ends it. */
  readonly start: number;
}

/** What becomes tokens at once: a chunk of a text, or, where that is null, the end of one. Then the run has come to `place`. */
interface Part {
  readonly text: Text;
  readonly chunk: TextChunk | null;
  readonly place: number;
}

/**
 * Writes the tokens of texts, in the order of `files`, to one file of tokens; holds a few MB of them at a time for each thread. A run that was
 * killed is gone on with, if texts, tokenizer and settings are the same. Throws a UsageError for what is no file, for texts without any byte,
 * and for an `out` that is a text among them or any other file than one of tokens; a file of tokens is replaced once the new one is whole.
 */
export async function tokenizeFiles(
  files: readonly string[],
  out: string,
  settings: TokenizeSettings,
  observer: TokenizeObserver,
): Promise<TokenFileHeader> {
  const { tokenizer } = settings;
  const texts = textsOf(files);
  const totalBytes = texts.reduce((sum, { bytes }) => sum + bytes, 0);
  checkTarget(out, files);
  if (totalBytes === 0) throw new UsageError(`${files.join(', ')}: there is no byte in it, and so no token.`);
  const job = describeJob(files, settings);
  const { vocabularySize } = tokenizer;
  using writer = new TokenFileWriter(out, { vocabularySize, metadata: tokenizerMetadata(settings), job });
  const doneBytes = bytesBefore(writer.place, texts);
  if (writer.leftovers !== 'none') observer.restarted(writer.leftovers === 'adopted' ? doneBytes : null);
  const parts = partsOf(texts, tokenizer, writer.place);
  for await (const { text, place, tokens } of encoded(parts, settings, totalBytes - doneBytes)) {
    writer.append(tokens);
    writer.save(place);
    observer.progressed(text.path, bytesBefore(place, texts), totalBytes);
  }
  return writer.finish();
}

function textsOf(files: readonly string[]): Text[] {
  let start = 0;
  return files.map((path) => {
    const text = { path, bytes: sizeOfText(path), start };
    start += text.bytes + 1;
    return text;
  });
}

function bytesBefore(place: number, texts: readonly Text[]): number {
  return texts.reduce((sum, { start, bytes }) => sum + Math.max(0, Math.min(bytes, place - start)), 0);
}

/** All that comes after a place. */
function* partsOf(texts: readonly Text[], tokenizer: Tokenizer, from: number): Generator<Part> {
  for (const text of texts) {
    const end = text.start + text.bytes;
    if (from > end) continue;
    let place = Math.max(from, text.start);
    const pieces = piecesOf(text.path, place - text.start);
    for (const chunk of tokenizer.chunksOf(pieces, text.path, place === text.start)) {
      const { content } = chunk;
      place += typeof content === 'string' ? Buffer.byteLength(content) : content.length;
      yield { text, chunk, place: Math.min(place, end) };
    }
    yield { text, chunk: null, place: end + 1 };
  }
}

/** The tokens of parts, in their order; several threads encode where there is much of them. */
async function* encoded(
  parts: Iterable<Part>,
  { tokenizer, endOfText }: TokenizeSettings,
  bytes: number,
): AsyncGenerator<Part & { readonly tokens: ArrayLike<number> }> {
  const atEnd = endOfText === null ? [] : [endOfText];
  const count = countThreads(tokenizer, bytes);
  if (count < 2) {
    for (const part of parts)
      yield { ...part, tokens: part.chunk === null ? atEnd : tokenizer.tokensOf(part.chunk) };
    return;
  }
  await using threads = new EncodeThreads(tokenizer, count);
  const waiting: { readonly part: Part; readonly tokens: Promise<ArrayLike<number>> }[] = [];
  async function next() {
    const { part, tokens } = waiting.shift()!;
    return { ...part, tokens: await tokens };
  }
  for (const part of parts) {
    const tokens =
      part.chunk === null ? Promise.resolve(atEnd) : threads.encode(part.chunk as TextChunk<string>);
    waiting.push({ part, tokens });
    // Each has one to encode while the one before is written.
    if (waiting.length > 2 * count) yield await next();
  }
  while (waiting.length > 0) yield await next();
}

function* piecesOf(path: string, from: number): Generator<Uint8Array> {
  const file = openSync(path, 'r');
  try {
    const piece = new Uint8Array(pieceBytes);
    for (let at = from, count = 0; (count = readSync(file, piece, 0, pieceBytes, at)) > 0; at += count)
      yield piece.subarray(0, count);
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
