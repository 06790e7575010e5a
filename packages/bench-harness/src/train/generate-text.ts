import { setImmediate } from 'node:timers/promises';
import { Generator, device as openDevice } from '@roofline/tensor-core';
import { type GenerateOptions, TransformerLM, generateTokens, loadTraining } from '@roofline/transformer';
import { attentionFunction } from '../attention/attention-function.ts';
import { withoutCodes } from '../cli/output.ts';
import { openDevice as findDevice } from '../device/prepare-device.ts';
import { UsageError } from '../errors.ts';
import { findCheckpoint } from './run-folder.ts';

const vocabularyOfBytes = 256;

/**
 * Writes a prompt, and what a trained model goes on with, to stdout as it is drawn. Whether it came to the end, or was interrupted.
 * Throws a UsageError for a model whose tokens are no bytes.
 */
export async function generateText(
  path: string,
  prompt: string,
  sampling: Pick<GenerateOptions, 'maxNewTokens' | 'temperature' | 'topK' | 'seed'>,
  { device: spec, signal }: { readonly device: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const { path: file, settings } = findCheckpoint(path);
  const { model: named, context: contextLength } = settings;
  if (named.shape.vocabularySize !== vocabularyOfBytes) {
    throw new UsageError(
      `${file} is of a vocabulary of ${named.shape.vocabularySize} tokens; texts are written of bytes, a vocabulary of ${vocabularyOfBytes}.`,
    );
  }
  if (prompt === '') throw new UsageError('--prompt wants a text of at least one character.');
  const found = await findDevice(spec, { signal });
  if (found === null) return false;
  const device = openDevice(found.label as `cuda:${number}`);
  const attention = attentionFunction(settings.attention);
  using model = new TransformerLM({ ...named.shape, contextLength }, { device, attention });
  // The generator of this process is no part of what is asked for.
  loadTraining(file, { model, generator: new Generator(0) });
  process.stdout.write(prompt);
  // A character may be of several tokens.
  const text = new TextDecoder();
  const options = { ...sampling, windowStride: Math.ceil(contextLength / 2) };
  for (const token of generateTokens(model, [...Buffer.from(prompt)], options)) {
    process.stdout.write(withoutCodes(text.decode(Uint8Array.of(token), { stream: true })));
    await setImmediate();
    if (signal.aborted) break;
  }
  process.stdout.write('\n');
  return !signal.aborted;
}
