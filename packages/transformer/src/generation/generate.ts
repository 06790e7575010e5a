import {
  RooflineError,
  checkCount,
  checkFlag,
  checkNumber,
  checkOptions,
  describeValue,
} from '@roofline/tensor-core';
import { KeyValueCache } from './key-value-cache.ts';
import { CompiledDecoding, nextLogits } from './next-logits.ts';
import { randomNumbers } from './random-numbers.ts';
import { type SamplingOptions, checkSamplingOptions, drawToken } from './sampling.ts';
import { type TransformerLM, requireModel } from '../model/transformer-lm.ts';

/** Options of `generate` and `generateTokens`. */
export interface GenerateOptions extends SamplingOptions {
  /** The most tokens to generate; `Infinity` for no end. Default 256. */
  readonly maxNewTokens?: number;
  /** Generation ends after this token, or one of these, which is still given out. */
  readonly stopToken?: number | readonly number[];
  /** The same seed gives the same tokens. Default 0. */
  readonly seed?: number;
  /**
   * Whether keys and values of earlier tokens are kept, so that the model runs over each token once while they fit
   * the context. The tokens are the same without, up to rounding. Default true.
   */
  readonly useCache?: boolean;
  /**
   * How many of the oldest tokens the window over the text drops each time that it is full, from 1 to the
   * context length. At every move the model runs over the whole window again, because positions are absolute: by
   * 1, the default, it always sees as many tokens as it can, and runs over all of them for each new one; by half
   * the context it sees at least that half, and runs over one token for nearly every new one.
   */
  readonly windowStride?: number;
  /**
   * Whether the model runs over single tokens as one program (`compile` of tensor-core), whose attention is `plainAttention`
   * over the whole cache. The first two of them take longer; the tokens are the same up to rounding. Needs the cache.
   * Default false.
   */
  readonly compile?: boolean;
}

/** Options of `generateBatch`; maxNewTokens is 256 or, where that is less, what the context leaves. */
export type BatchGenerateOptions = Omit<GenerateOptions, 'useCache' | 'windowStride'>;

const generateOptions: readonly (keyof GenerateOptions)[] = [
  ...(['maxNewTokens', 'stopToken', 'seed', 'useCache', 'windowStride', 'compile'] as const),
  ...(['temperature', 'topK', 'topP'] as const),
];

/**
 * Continues a prompt, token by token as they are drawn. The model sees the prompt at once, then one token a step
 * with the keys and values of those before it; beyond the context length it sees a window of the last tokens, see
 * `windowStride`. Memory is bounded by the context length, and freed when the generator returns: end it, or let
 * `for ... of` do so. Throws a RooflineError (code RANGE) for an empty prompt, ids outside the vocabulary, or options out of
 * range, and one (code OPTION) for options that do not exist, before the first token is asked for.
 */
export function generateTokens(
  model: TransformerLM,
  promptIds: readonly number[],
  options: GenerateOptions = {},
): Generator<number, void> {
  checkCall('generateTokens', model, promptIds, options);
  return drawTokens(model, promptIds, options);
}

function* drawTokens(
  model: TransformerLM,
  promptIds: readonly number[],
  options: GenerateOptions,
): Generator<number, void> {
  const { maxNewTokens = 256, stopToken, seed = 0, useCache = true, windowStride = 1 } = options;
  const { compile: isCompiled = false } = options;
  const stopTokens = stopToken === undefined ? [] : [stopToken].flat();
  const { contextLength } = model.config;
  const random = randomNumbers(seed);
  const tokens = [...promptIds];
  // The last token drawn is never read.
  const capacity = Math.min(contextLength, tokens.length + maxNewTokens - 1);
  using cache = useCache && maxNewTokens > 0 ? new KeyValueCache(capacity) : null;
  using program = isCompiled && cache ? new CompiledDecoding(model, cache) : null;
  let cachedFrom = 0;
  for (let step = 0; step < maxNewTokens; step++) {
    const start = windowStart(tokens.length, contextLength, windowStride);
    if (start !== cachedFrom) cache?.clear();
    cachedFrom = start;
    const unseen = tokens.slice(start + (cache?.length ?? 0));
    const isStep = cache !== null && cache.length > 0;
    const logits = program && isStep ? program.logitsAfter(unseen) : nextLogits(model, [unseen], cache);
    const token = drawToken(logits[0]!, options, random);
    tokens.push(token);
    yield token;
    if (stopTokens.includes(token)) return;
  }
}

/** The tokens that `generateTokens` gives, all at once; the prompt is not repeated. */
export function generate(
  model: TransformerLM,
  promptIds: readonly number[],
  options: GenerateOptions = {},
): number[] {
  checkCall('generate', model, promptIds, options);
  return [...drawTokens(model, promptIds, options)];
}

/** The first of `length` tokens that the model sees: it moves by whole strides, and no further than it must. */
function windowStart(length: number, contextLength: number, stride: number): number {
  return Math.ceil(Math.max(0, length - contextLength) / stride) * stride;
}

/**
 * Continues several prompts at once: what `generate` gives of each, with the seed `seed + i` for the one at `i`. They may be of several lengths: shorter
 * ones are filled up at the left, where no token looks (`padding` of `KeyValueCache`), and the tokens are the same up to rounding.
 * All fit the context, longest prompt and new tokens together, or it throws a RooflineError (code RANGE); else as `generate`.
 *
 * @example
 * ```ts
 * import { TransformerLM, generateBatch, presetConfig } from '@roofline/transformer';
 *
 * const model = new TransformerLM(presetConfig('tiny', { contextLength: 16 }), { seed: 0 });
 * console.log(generateBatch(model, [[1, 2, 3], [4]], { maxNewTokens: 5 })); // two lists of five
 * ```
 */
export function generateBatch(
  model: TransformerLM,
  prompts: readonly (readonly number[])[],
  options: BatchGenerateOptions = {},
): number[][] {
  const maxNewTokens = checkBatchCall(model, prompts, options);
  const { stopToken, seed = 0, compile: isCompiled = false } = options;
  const stopTokens = stopToken === undefined ? [] : [stopToken].flat();
  const longest = Math.max(...prompts.map(({ length }) => length));
  const padding = prompts.map(({ length }) => longest - length);
  const added: number[][] = prompts.map(() => []);
  if (maxNewTokens === 0) return added;
  const randoms = prompts.map((_, row) => randomNumbers(seed + row));
  const isOver = (tokens: readonly number[]) => stopTokens.includes(tokens.at(-1)!);
  using cache = new KeyValueCache(longest + maxNewTokens - 1, { padding });
  using program = isCompiled ? new CompiledDecoding(model, cache) : null;
  let rows = prompts.map((prompt, row) => [...Array.from({ length: padding[row]! }, () => 0), ...prompt]);
  for (let step = 0; step < maxNewTokens && !added.every(isOver); step++) {
    const logits =
      program && step > 0 ? program.logitsAfter(rows.map(([id]) => id!)) : nextLogits(model, rows, cache);
    // A sequence that is over goes along, and nothing is made of what it gives.
    rows = logits.map((row, index) => [drawToken(row, options, randoms[index]!)]);
    for (const [index, tokens] of added.entries()) if (!isOver(tokens)) tokens.push(rows[index]![0]!);
  }
  return added;
}

/** Gives how many tokens each prompt may get. */
function checkBatchCall(
  model: TransformerLM,
  prompts: readonly (readonly number[])[],
  options: BatchGenerateOptions,
): number {
  checkOptions(
    'generateBatch',
    options,
    generateOptions.filter((name) => name !== 'useCache' && name !== 'windowStride'),
  );
  if (!Array.isArray(prompts) || prompts.length === 0) {
    throw new RooflineError(
      'RANGE',
      'generateBatch: the prompts must be a list of at least one list of tokens.',
    );
  }
  for (const prompt of prompts) checkCall('generateBatch', model, prompt as readonly number[], options);
  const { contextLength } = model.config;
  const longest = Math.max(...prompts.map((prompt) => (prompt as readonly number[]).length));
  // The last token drawn is never read.
  const most = contextLength - longest + 1;
  const { maxNewTokens = Math.min(256, Math.max(most, 1)) } = options;
  if (maxNewTokens <= most) return maxNewTokens;
  throw new RooflineError(
    'RANGE',
    `generateBatch: a prompt of ${longest} tokens and maxNewTokens ${maxNewTokens} do not fit the context of ${contextLength}; ` +
      'take fewer, or `generate` for each prompt, which moves a window over the text.',
  );
}

function checkCall(
  owner: string,
  model: TransformerLM,
  promptIds: readonly number[],
  options: GenerateOptions,
): void {
  requireModel(owner, model);
  const { vocabularySize, contextLength } = model.config;
  checkOptions(owner, options, generateOptions);
  checkSamplingOptions(owner, options);
  const { maxNewTokens = 256, stopToken, seed = 0, useCache = true, windowStride = 1 } = options;
  const isLength = (value: number) => value === Infinity || (Number.isInteger(value) && value >= 0);
  checkNumber(owner, 'maxNewTokens', maxNewTokens, 'a whole number of zero or more, or Infinity', isLength);
  const isStride = (value: number) => Number.isInteger(value) && value >= 1 && value <= contextLength;
  const strides = `a whole number from 1 to the context length ${contextLength}`;
  checkNumber(owner, 'windowStride', windowStride, strides, isStride);
  checkCount(owner, 'the seed', seed);
  checkFlag(owner, 'useCache', useCache);
  const { compile: isCompiled = false } = options;
  checkFlag(owner, 'compile', isCompiled);
  if (isCompiled && !useCache) {
    throw new RooflineError('OPTION', `${owner}: compile needs the cache; leave out useCache: false.`);
  }
  if (stopToken !== undefined) for (const id of [stopToken].flat()) checkToken(owner, id, vocabularySize);
  if (!Array.isArray(promptIds) || promptIds.length === 0) {
    throw new RooflineError('RANGE', `${owner}: the prompt must be a list of at least one token.`);
  }
  for (const id of promptIds) checkToken(owner, id, vocabularySize);
}

function checkToken(owner: string, id: number, vocabularySize: number): void {
  if (Number.isInteger(id) && id >= 0 && id < vocabularySize) return;
  throw new RooflineError(
    'RANGE',
    `${owner}: token ${describeValue(id)} is outside the vocabulary of ${vocabularySize}.`,
  );
}
