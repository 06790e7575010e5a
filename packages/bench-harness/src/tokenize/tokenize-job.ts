import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tokenizerMetadata } from './kept-tokenizer.ts';
import { configName } from './open-tokenizer.ts';
import type { TokenizeSettings } from './tokenizers.ts';

/**
 * All that decides which tokens come of texts, in words: a run goes on with what another has left only where these are the same. A text is
 * known by its place, its size and when it was changed, since to read all of them again would take long.
 */
export function describeJob(files: readonly string[], settings: TokenizeSettings): string {
  const texts = files.map((path) => {
    const { size, mtimeNs, ctimeNs, ino } = statSync(path, { bigint: true });
    return [realpathSync(path), ...[size, mtimeNs, ctimeNs, ino].map(String)];
  });
  const { tokenizer, endOfText } = settings;
  const config = tokenizer.file === null ? '' : join(dirname(tokenizer.file), configName);
  return JSON.stringify({
    ...{ texts, endOfText, tokenizer: tokenizerMetadata(settings) },
    config: existsSync(config) ? readFileSync(config, 'utf8') : null,
  });
}
