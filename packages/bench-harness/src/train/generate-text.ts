import { setImmediate } from 'node:timers/promises';
import { type GenerateOptions, generateTokens } from '@roofline/transformer';
import { withoutCodes } from '../cli/output.ts';
import { UsageError } from '../errors.ts';
import type { Writer } from './open-writer.ts';

/** How many tokens of a prompt may change the text of those after it. */
const tokensBefore = 16;

/** How texts are drawn; what is left out is as the model has it. */
type Sampling = {
  readonly [name in 'maxNewTokens' | 'temperature' | 'topK' | 'topP' | 'seed']?: number | undefined;
};

/**
 * Writes a prompt, and what a model goes on with, to stdout as it is drawn, up to a token that ends the text. Whether it was not
 * interrupted. Throws a UsageError for a prompt without any token.
 */
export async function generateText(
  { model, tokenizer, defaults, begins }: Writer,
  prompt: string,
  given: Sampling,
  signal: AbortSignal,
): Promise<boolean> {
  const tokens = tokenizer.encode(prompt, { begins });
  if (tokens.length === 0) throw new UsageError('--prompt wants a text of at least one character.');
  const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const options: GenerateOptions = {
    ...defaults,
    ...asked,
    windowStride: Math.ceil(model.config.contextLength / 2),
  };
  const text = tokenizer.streamText(tokens.slice(-tokensBefore));
  process.stdout.write(prompt);
  for (const token of generateTokens(model, tokens, options)) {
    process.stdout.write(withoutCodes(text.push(token)));
    await setImmediate();
    if (signal.aborted) break;
  }
  process.stdout.write(`${withoutCodes(text.end())}\n`);
  return !signal.aborted;
}
