import {
  type CompiledFunction,
  RooflineError,
  type Tensor,
  checkCount,
  checkFlag,
  checkNumber,
  checkOptions,
  compile,
  describeValue,
  fromTypedArray,
  noGrad,
  reshape,
  scope,
  select,
} from '@roofline/tensor-core';
import { CacheStep } from './cache-step.ts';
import { KeyValueCache } from './key-value-cache.ts';
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
    const logits = program && isStep ? program.logitsBehind(unseen[0]!) : nextLogits(model, unseen, cache);
    const token = drawToken(logits, options, random);
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

/** The program of a token's step. */
class CompiledDecoding {
  readonly #model: TransformerLM;
  readonly #cache: KeyValueCache;
  readonly #step: CompiledFunction<(token: Tensor, position: Tensor) => Tensor>;

  constructor(model: TransformerLM, cache: KeyValueCache) {
    this.#model = model;
    this.#cache = cache;
    this.#step = compile((token: Tensor, position: Tensor) =>
      model.forward(token, new CacheStep(cache, position)),
    );
  }

  /** The logits of the token after `id`, which follows those of the cache. */
  logitsBehind(id: number): number[] {
    this.#cache.checkRoom(1);
    const logits = noGrad(() =>
      scope(() => {
        const position = reshape(rowOf(this.#model, [this.#cache.length]), [1]);
        return this.#step(rowOf(this.#model, [id]), position).toFlatArray();
      }),
    );
    this.#cache.advance(1);
    return logits;
  }

  [Symbol.dispose](): void {
    this.#step.dispose();
  }
}

/** The logits of the token after `ids`, which follow those of the cache. */
function nextLogits(model: TransformerLM, ids: readonly number[], cache: KeyValueCache | null): number[] {
  return noGrad(() =>
    scope(() => {
      const logits = model.forward(rowOf(model, ids), cache ?? undefined);
      return select(select(logits, 0, 0), 0, -1).toFlatArray();
    }),
  );
}

/** Ids as a batch of one. */
function rowOf(model: TransformerLM, ids: readonly number[]): Tensor {
  const { device } = model.lmHead.weight;
  return fromTypedArray(Int32Array.from(ids), [1, ids.length], { device });
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
