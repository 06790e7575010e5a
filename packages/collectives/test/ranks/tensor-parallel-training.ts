import { deepStrictEqual, ok } from 'node:assert/strict';
import {
  type CompileOptions,
  type DType,
  Generator,
  type Tensor,
  add,
  compile,
  copyInPlace,
  less,
  mul,
  noGrad,
  randint,
  randn,
  scope,
  slice,
  where,
} from '@roofline/tensor-core';
import { SGD, clipGradientNorm } from '@roofline/optim';
import {
  type ModelConfig,
  TransformerLM,
  type TransformerOptions,
  languageModelLoss,
} from '@roofline/transformer';
import { groupOf, place } from './group-of.ts';

// What the ranks of tensor-parallel.ts train, and what they are held to.

export const { group, device, nccl } = await groupOf();
export const { rank, size } = group;
/** Of single passes; optimizers take float32. */
export const exact: DType = place === 'gloo' ? 'float64' : 'float32';
const units: Partial<Record<DType, number>> = { float32: 2 ** -24, float64: 2 ** -53 };

export const config: ModelConfig = {
  ...{ vocabularySize: 24, contextLength: 8, modelDimension: 16, feedForwardDimension: 24 },
  ...{ layers: 2, heads: 4 },
};
export const gpt2: Partial<ModelConfig> = {
  ...{ positions: 'learned', norm: 'layer', feedForward: 'gelu-tanh', attentionBias: 'all' },
  ...{ feedForwardBias: true, tieWordEmbeddings: true },
};
export const kinds: Readonly<Record<string, ModelConfig>> = {
  llama: config,
  'grouped queries': {
    ...{ ...config, heads: 8, keyValueHeads: 4, headDimension: 4 },
    ...{ queryKeyNorm: true, attentionBias: 'query-key-value' },
  },
  // A head of keys for two ranks.
  'fewer keys than ranks': {
    ...{ ...config, heads: 8, keyValueHeads: Math.max(1, size / 2), headDimension: 4 },
    ...{ queryKeyNorm: true, attentionBias: 'query-key-value' },
  },
  'GPT-2': { ...config, ...gpt2 },
};

/** Those that tests take which compile, or train on four ranks: all on two. */
const { 'GPT-2': tied, 'fewer keys than ranks': shared } = kinds as Record<string, ModelConfig>;
export const fewKinds: Readonly<Record<string, ModelConfig>> =
  place === 'gloo' && size === 2
    ? kinds
    : { 'GPT-2': tied!, ...(size === 4 && { 'one head of keys': { ...shared!, keyValueHeads: 1 } }) };

/** Biases and the weights of norms, too, are other than zeros and ones. */
export function build(given: ModelConfig, options: TransformerOptions = {}): TransformerLM {
  const model = new TransformerLM(given, { device, seed: 5, ...options });
  const generator = new Generator(6);
  noGrad(() =>
    scope(() => {
      for (const parameter of model.parameters())
        if (parameter.rank === 1)
          copyInPlace(
            parameter,
            add(parameter, randn(parameter.shape, { generator, device, dtype: parameter.dtype, std: 0.2 })),
          );
    }),
  );
  return model;
}

/** The same tokens on all ranks; some targets do not count. `of` is one of so many `parts` of the rows, null for all of them. */
export function batchOf(step: number, of: number | null = null, parts = 2): { ids: Tensor; targets: Tensor } {
  const generator = new Generator(100 + step);
  const tokens = () => randint(0, config.vocabularySize, [4, 8], { generator, device, dtype: 'int64' });
  const [ids, targets] = [tokens(), tokens()];
  const counted = where(less(targets, 21), targets, -100);
  const count = 4 / parts;
  const rows = (x: Tensor) => (of === null ? x : slice(x, 0, count * of, count * (of + 1)));
  return { ids: rows(ids), targets: rows(counted) };
}

export type Numbers = Record<string, number[] | null>;
export const valuesOf = (named: Iterable<readonly [string, Tensor | null]>): Numbers =>
  Object.fromEntries([...valuesIn(named)]);
function* valuesIn(named: Iterable<readonly [string, Tensor | null]>) {
  for (const [name, tensor] of named) yield [name, tensor && tensor.toFlatArray()] as const;
}
export const gradientsOf = (model: TransformerLM) =>
  valuesOf([...model.namedParameters()].map(([name, { grad }]) => [name, grad] as const));

/**
 * A sum of n terms in another order differs by at most n roundings of the sum of their sizes (Higham 2002, section 4.2). On its way
 * from ids to a gradient a number passes all sums of the model forward and backward, and each step adds a pass.
 */
export function boundOf(
  { modelDimension, feedForwardDimension, contextLength, vocabularySize, layers }: ModelConfig,
  steps: number,
  dtype: DType = 'float32',
) {
  const terms = layers * (4 * modelDimension + 2 * feedForwardDimension + 2 * contextLength) + vocabularySize;
  return 3 * terms * steps * units[dtype]!;
}

export function expectClose(what: string, given: Numbers, expected: Numbers, bound: number): void {
  deepStrictEqual(Object.keys(given).toSorted(), Object.keys(expected).toSorted(), what);
  const largest = Math.max(...Object.values(expected).map((values) => Math.max(...values!.map(Math.abs))));
  for (const [name, values] of Object.entries(given)) {
    const worst = Math.max(...values!.map((value, i) => Math.abs(value - expected[name]![i]!)));
    ok(worst <= bound * largest, `${what}: ${name} differs by ${worst}, at most ${bound * largest}`);
  }
}

export type Stepping = { step(): void; zeroGrad(): void };

/** Losses of some steps. */
export function train(
  model: TransformerLM,
  optimizer: Stepping,
  options: {
    of?: number | null;
    parts?: number;
    compiled?: CompileOptions;
    logits?: 'whole' | 'chunked';
    clip?: () => void;
    /** What a rank takes of a batch. */
    prepare?: (batch: { ids: Tensor; targets: Tensor }) => { ids: Tensor; targets: Tensor };
  } = {},
): number[] {
  const step = (ids: Tensor, targets: Tensor) => {
    const loss = languageModelLoss(model, ids, targets, { logits: options.logits ?? 'whole' });
    loss.backward();
    options.clip?.();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const compiled = options.compiled && compile(step, options.compiled);
  const losses = Array.from({ length: 3 }, (_, i) =>
    scope(() => {
      const batch = batchOf(i, options.of, options.parts);
      const { ids, targets } = options.prepare?.(batch) ?? batch;
      return (compiled ?? step)(ids, targets).item();
    }),
  );
  // The first step makes the optimizer's state, which the second finds.
  if (compiled) ok(compiled.cache.misses <= 2 && compiled.cache.hits > 0, JSON.stringify(compiled.cache));
  compiled?.dispose();
  return losses;
}

/** Logits, and what is made again: all on two ranks. */
export const ways = (
  [
    ['whole', 'none'],
    ['chunked', 'block'],
    ['whole', 'attention-kept'],
    ['whole', 'recursive'],
  ] as const
).slice(0, size === 2 ? 4 : 2);
export const sgd = (parameters: Iterable<Tensor>) => new SGD(parameters, { learningRate: 0.1 });

/** Parameters after steps whose gradient is the mean of all parts'. */
export function trainParts(model: TransformerLM, parts: number): Numbers {
  const optimizer = sgd(model.parameters());
  for (let step = 0; step < 3; step++)
    scope(() => {
      for (let part = 0; part < parts; part++) {
        const { ids, targets } = batchOf(step, part, parts);
        mul(languageModelLoss(model, ids, targets), 1 / parts).backward();
      }
      clipGradientNorm(model.parameters(), 0.5);
      optimizer.step();
      optimizer.zeroGrad();
    });
  return valuesOf(model.namedParameters());
}
