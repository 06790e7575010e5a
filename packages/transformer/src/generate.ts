import { fromTypedArray, noGrad, scope, select } from '@roofline/tensor-core';
import { randomNumbers } from './random-numbers.ts';
import { type SamplingOptions, checkSamplingOptions, sampleToken } from './sampling.ts';
import type { TransformerLM } from './transformer-lm.ts';

export interface GenerateOptions extends SamplingOptions {
  /** The most tokens to generate. Default 256. */
  readonly maxNewTokens?: number;
  /** Generation ends after this token, which is still given out. */
  readonly stopToken?: number;
  /** The same seed gives the same tokens. Default 0. */
  readonly seed?: number;
}

/**
 * Continues a prompt, token by token as they are drawn. Each step runs the model over the last `contextLength`
 * tokens. Throws a RangeError for an empty prompt, ids outside the vocabulary, or options out of range.
 */
export function* generateTokens(
  model: TransformerLM,
  promptIds: readonly number[],
  options: GenerateOptions = {},
): Generator<number, void> {
  const { maxNewTokens = 256, stopToken, seed = 0 } = options;
  const { vocabularySize, contextLength } = model.config;
  checkSamplingOptions(options);
  checkPrompt(promptIds, vocabularySize);
  const random = randomNumbers(seed);
  const tokens = [...promptIds];
  for (let step = 0; step < maxNewTokens; step++) {
    const token = sampleToken(nextLogits(model, tokens.slice(-contextLength)), options, random);
    tokens.push(token);
    yield token;
    if (token === stopToken) return;
  }
}

/** The tokens that `generateTokens` gives, all at once; the prompt is not repeated. */
export function generate(
  model: TransformerLM,
  promptIds: readonly number[],
  options: GenerateOptions = {},
): number[] {
  return [...generateTokens(model, promptIds, options)];
}

/** The logits of the token behind `ids`. */
function nextLogits(model: TransformerLM, ids: readonly number[]): number[] {
  const { device } = model.lmHead.weight;
  return noGrad(() =>
    scope(() => {
      const logits = model.forward(fromTypedArray(Int32Array.from(ids), [1, ids.length], { device }));
      return select(select(logits, 0, 0), 0, -1).toFlatArray();
    }),
  );
}

function checkPrompt(promptIds: readonly number[], vocabularySize: number): void {
  if (promptIds.length === 0) throw new RangeError('generate: the prompt must have at least one token.');
  for (const id of promptIds) {
    if (!Number.isInteger(id) || id < 0 || id >= vocabularySize) {
      throw new RangeError(`generate: token ${id} is outside the vocabulary of ${vocabularySize}.`);
    }
  }
}
