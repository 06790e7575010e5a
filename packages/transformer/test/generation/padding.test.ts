import { type Tensor, noGrad, scope, tensor } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import {
  CacheStep,
  KeyValueCache,
  type ModelConfig,
  TransformerLM,
  type TransformerOptions,
  generate,
  generateBatch,
  plainAttention,
} from '../../src/index.ts';
import { families } from '../model/families.ts';
import { idsOf } from '../toy-model.ts';

const prompts = [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10, 11], [12]];
const longest = 5;
const padding = prompts.map(({ length }) => longest - length);
/** Filled up with ids that would be seen if they could be. */
const padded = prompts.map((prompt, row) => [
  ...Array.from({ length: padding[row]! }, () => 3 + row),
  ...prompt,
]);

/** The largest difference between logits of the last `count` tokens of a row, and those of the prompt alone. */
function difference(row: number, logits: number[], alone: number[]): number {
  const own = logits.slice(-alone.length);
  expect(own).toHaveLength(alone.length);
  return own.reduce((most, value, i) => Math.max(most, Math.abs(value - alone[i]!)), 0);
}

function rowOf(logits: Tensor, row: number): number[] {
  const [, length, vocabulary] = logits.shape as [number, number, number];
  return logits.toFlatArray().slice(row * length * vocabulary, (row + 1) * length * vocabulary);
}

/** Sums of at most 12 products below 4, in another order in other shapes, and angles of other positions. */
const tolerance = 48 * 2 ** -24 * 24;

describe.each(Object.entries(families))(
  'a batch of %s that is filled up at the left',
  (_, config: ModelConfig) => {
    const modelOf = (options: TransformerOptions = {}) => new TransformerLM(config, { seed: 5, ...options });
    const model = modelOf();
    const alone = prompts.map((prompt) => scope(() => model.forward(idsOf([prompt])).toFlatArray()));

    it.each([[[5]], [[3, 2]], [[1, 1, 1, 1, 1]]])(
      'has the logits of each sequence alone, in pieces of %j',
      (pieces) => {
        using cache = new KeyValueCache(longest, { padding });
        const logits = prompts.map((): number[] => []);
        for (const length of pieces) {
          const start = cache.length;
          const ids = idsOf(padded.map((row) => row.slice(start, start + length)));
          const given = noGrad(() => model.forward(ids, cache));
          logits.forEach((row, index) => row.push(...rowOf(given, index)));
        }
        for (const [row, own] of logits.entries()) {
          expect(own.every(Number.isFinite)).toBe(true);
          expect(difference(row, own, alone[row]!)).toBeLessThan(tolerance);
        }
      },
    );

    it.each([false, true])('goes on as each alone, compiled: %s', (compile) => {
      const options = { temperature: 0, maxNewTokens: 6 };
      const each = prompts.map((prompt) => generate(model, prompt, options));
      expect(generateBatch(model, prompts, { ...options, compile })).toEqual(each);
    });
  },
);

const config = families['gpt2']!;

describe('generateBatch', () => {
  const model = new TransformerLM(config, { seed: 5 });

  it('draws of each prompt what generate does by its seed, and ends each where it ends', () => {
    const free = { temperature: 2, maxNewTokens: 8, seed: 4 };
    const each = prompts.map((prompt, i) => generate(model, prompt, { ...free, seed: 4 + i }));
    expect(generateBatch(model, prompts, free)).toEqual(each);
    const stopToken = [each[0]![2]!, each[1]![5]!];
    const stopped = each.map((tokens) => {
      const end = tokens.findIndex((token) => stopToken.includes(token));
      return end < 0 ? tokens : tokens.slice(0, end + 1);
    });
    expect(stopped).not.toEqual(each);
    expect(generateBatch(model, prompts, { ...free, stopToken })).toEqual(stopped);
    expect(generateBatch(model, prompts, { maxNewTokens: 0 })).toEqual([[], [], [], []]);
  });

  it('refuses what does not fit the context', () => {
    expect(generateBatch(model, prompts, { maxNewTokens: 8 })[0]).toHaveLength(8);
    expect(() => generateBatch(model, prompts, { maxNewTokens: 9 })).toThrow(
      /a prompt of 5 tokens and maxNewTokens 9 do not fit the context of 12/,
    );
    expect(() => generateBatch(model, [])).toThrow(/at least one list of tokens/);
    expect(() => generateBatch(model, [[1], []])).toThrow(/the prompt must be a list of at least one token/);
  });

  it('gives the attention of the model whole sequences alone', () => {
    const seen: number[][] = [];
    const attention: typeof plainAttention = (q, k, v, settings) => {
      seen.push([q.shape[0]!, q.shape[2]!, k.shape[2]!]);
      return plainAttention(q, k, v, settings);
    };
    const own = new TransformerLM({ ...config, layers: 1 }, { seed: 5, attention });
    generateBatch(own, prompts, { maxNewTokens: 2 });
    expect(seen).toEqual(prompts.map(({ length }) => [1, length, length]));
  });

  it('refuses padding of another batch, and a step before each sequence has begun', () => {
    using cache = new KeyValueCache(8, { padding: [1, 0] });
    expect(() => noGrad(() => model.forward(idsOf([[1, 2]]), cache))).toThrow(
      /padding of 2 sequences does not fit a batch of 1/,
    );
    using late = new KeyValueCache(8, { padding: [3, 0] });
    noGrad(() =>
      model.forward(
        idsOf([
          [1, 2],
          [1, 2],
        ]),
        late,
      ),
    );
    const step = () => new CacheStep(late, tensor([2], { dtype: 'int32' }));
    expect(() => noGrad(() => model.forward(idsOf([[1], [1]]), step()))).toThrow(
      /give the model all of that/,
    );
  });

  it('steps once it holds all that fills sequences up, and no more', () => {
    using cache = new KeyValueCache(8, { padding: [2, 0] });
    const rows = [3, 4];
    noGrad(() => model.forward(idsOf([[0, 0], [1, 2]]), cache)); // prettier-ignore
    const position = tensor([2], { dtype: 'int32' });
    const logits = noGrad(() => model.forward(idsOf(rows.map((id) => [id])), new CacheStep(cache, position)));
    const alone = [[3], [1, 2, 4]].map((row) => noGrad(() => model.forward(idsOf([row])).toFlatArray()));
    alone.forEach((own, row) =>
      expect(difference(row, rowOf(logits, row), own.slice(-config.vocabularySize))).toBeLessThan(tolerance),
    );
  });

  it('gives 256 tokens where there is room for more, as generate does', () => {
    const sizes = { modelDimension: 4, feedForwardDimension: 4, layers: 1, heads: 1 };
    const long = new TransformerLM({ ...sizes, vocabularySize: 3, contextLength: 300 }, { seed: 1 });
    expect(generateBatch(long, [[1], [1, 2]], { seed: 2 }).map(({ length }) => length)).toEqual([256, 256]);
  });

  it.skipIf(hostCompilerVersion() === null)('gives the same on a GPU that the CPU plays', () => {
    const gpu = openEmulatedDevice();
    const options = { temperature: 0, maxNewTokens: 3 };
    using onGpu = new TransformerLM(config, { seed: 5, device: gpu });
    expect(generateBatch(onGpu, prompts, options)).toEqual(generateBatch(model, prompts, options));
  });
});
