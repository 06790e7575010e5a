import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { TokenFileMetadata } from '@roofline/transformer';
import { UsageError } from '../errors.ts';
import { configName, nameInFolder, tokenizersIn } from './open-tokenizer.ts';
import type { TokenizeSettings, Tokenizer } from './tokenizers.ts';

/** The folder of a training's folder that holds a copy of its tokenizer. */
const keptFolder = 'tokenizer';

/** What a file of tokens says of the tokenizer that they come from; nothing of bytes. */
export function tokenizerMetadata({ tokenizer, endOfText }: TokenizeSettings): TokenFileMetadata {
  const { file } = tokenizer;
  if (file === null) return {};
  const checksum = checksumOf(file);
  const text = endOfText === null ? undefined : tokenizer.textOf(endOfText);
  return { tokenizer: file, 'tokenizer.crc32': checksum, ...(text && { endOfText: text }) };
}

/** The token that `--end-of-text` names; null without. Throws a UsageError for what is none of this tokenizer. */
export function endOfTextToken(tokenizer: Tokenizer, named: string | undefined): number | null {
  if (named === undefined) return null;
  const { file, endOfText } = tokenizer;
  if (file === null)
    throw new UsageError('--end-of-text needs a --tokenizer with such a token; bytes have none.');
  const token = named === 'eos' ? endOfText : tokenizer.tokenOf(named);
  if (token !== null && token !== undefined) return token;
  throw new UsageError(
    named === 'eos'
      ? `--end-of-text eos: there is no eos_token in a ${configName} next to ${file}: name the token, as --end-of-text '<|endoftext|>'.`
      : `--end-of-text: ${file} has no token '${named}'.`,
  );
}

/** Where a training's folder has its tokenizer. */
export function keptTokenizer(folder: string): string {
  return join(folder, keptFolder);
}

/**
 * Copies the tokenizer that a file of tokens names into the folder of a training, so that it is there to write with. One that is kept already
 * stays, unless a training begins in the folder with another, or with bytes. Gives a sentence where it is not what it was, or null.
 */
export function keepTokenizer(
  metadata: TokenFileMetadata,
  folder: string,
  { begins }: { readonly begins: boolean },
): string | null {
  const { tokenizer: file, 'tokenizer.crc32': checksum, endOfText } = metadata;
  const kept = keptTokenizer(folder);
  if (file === undefined) {
    if (begins) rmSync(kept, { recursive: true, force: true });
    return null;
  }
  const [there] = tokenizersIn(kept);
  if (there !== undefined && (!begins || checksumOf(join(kept, there)) === checksum)) return null;
  const problem = !existsSync(file)
    ? 'is not there'
    : checksumOf(file) === checksum
      ? null
      : 'has been changed';
  if (problem !== null)
    return `The tokenizer of the data, ${file}, ${problem}: \`roofline generate\` will need it by --tokenizer.`;
  const config = join(dirname(file), configName);
  const fields = existsSync(config) ? (JSON.parse(readFileSync(config, 'utf8')) as object) : {};
  // It appears when all of it is there: a run that is killed meanwhile keeps none.
  const part = `${kept}.part`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  copyFileSync(file, join(part, nameInFolder(file)));
  const withEnd = { ...fields, ...(endOfText !== undefined && { eos_token: endOfText }) };
  writeFileSync(join(part, configName), JSON.stringify(withEnd, null, 2));
  rmSync(kept, { recursive: true, force: true });
  renameSync(part, kept);
  return null;
}

function checksumOf(file: string): string {
  return crc32(readFileSync(file)).toString(16).padStart(8, '0');
}
