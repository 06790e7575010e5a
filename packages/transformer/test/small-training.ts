import { createHash } from 'node:crypto';
import { AdamW, GradientScaler, clipGradientNorm } from '@roofline/optim';
import {
  type AutocastDType,
  type CompileOptions,
  type Device,
  type DeviceSpec,
  Generator,
  type Tensor,
  type TypedArray,
  autocast,
  compile,
  randint,
  scope,
  slice,
} from '@roofline/tensor-core';
import { expect } from 'vitest';
import {
  type LanguageModelLossOptions,
  type ModelConfig,
  type RecomputePolicy,
  TransformerLM,
  languageModelLoss,
  presets,
} from '../src/index.ts';

export const trainingDtypes = ['float32', 'bfloat16', 'float16'] as const;
export type TrainingDType = 'float32' | AutocastDType;

/** Each preset with its number of heads and its proportions, and few layers and features. */
export const smallPresets = Object.entries(presets).map(([name, preset]) => {
  const modelDimension = 4 * preset.heads;
  const feedForwardDimension = Math.round(
    (modelDimension * preset.feedForwardDimension) / preset.modelDimension,
  );
  const small = { vocabularySize: 61, contextLength: 12, modelDimension, feedForwardDimension, layers: 2 };
  return [name, { ...preset, ...small }] as const;
});

/** How a training saves memory. */
export interface Savings extends LanguageModelLossOptions {
  readonly recompute?: RecomputePolicy;
}

/** A model in training: with loss scaling in float16, and clipping. Gradients stay until the next step. */
export class Training {
  readonly model: TransformerLM;
  readonly optimizer: AdamW;
  readonly scaler: GradientScaler;
  readonly #dtype: TrainingDType;
  readonly #lossOptions: LanguageModelLossOptions;

  constructor(
    config: ModelConfig,
    dtype: TrainingDType,
    device: DeviceSpec | Device,
    { recompute, ...lossOptions }: Savings = {},
  ) {
    this.model = new TransformerLM(config, { seed: 3, device, recompute });
    this.#lossOptions = lossOptions;
    this.optimizer = new AdamW(this.model.parameters(), { learningRate: 0.01 });
    this.scaler = new GradientScaler({ enabled: dtype === 'float16' });
    this.#dtype = dtype;
  }

  step(ids: Tensor, targets: Tensor): Tensor {
    return scope(() => {
      this.optimizer.zeroGrad();
      const forward = () => languageModelLoss(this.model, ids, targets, this.#lossOptions);
      const loss = this.#dtype === 'float32' ? forward() : autocast(this.#dtype, forward);
      this.scaler.scale(loss).backward();
      this.scaler.unscale(this.optimizer);
      clipGradientNorm(this.model.parameters(), 1);
      this.scaler.step(this.optimizer);
      this.scaler.update();
      return loss.detach();
    });
  }

  dispose(): void {
    this.scaler.dispose();
    this.optimizer.dispose();
    this.model.dispose();
  }
}

/** What training on one stream of tokens has come to. */
export interface Trained {
  readonly losses: number[];
  readonly gradients: TypedArray[];
  readonly parameters: TypedArray[];
  /** Calls that ran as a program. */
  readonly replays: number;
}

/** Trains a small model for so many steps at a learning rate that falls, as eager code or as a compiled function. */
export function train(
  config: ModelConfig,
  dtype: TrainingDType,
  device: DeviceSpec | Device,
  execution: 'eager' | 'compiled',
  steps: number,
  options: CompileOptions = {},
  savings: Savings = {},
): Trained {
  const training = new Training(config, dtype, device, savings);
  const eager = (ids: Tensor, targets: Tensor) => training.step(ids, targets);
  const compiled = execution === 'compiled' ? compile(eager, options) : null;
  const generator = new Generator(5);
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    training.optimizer.learningRate = 0.01 / (i + 1);
    scope(() => {
      const tokens = randint(0, config.vocabularySize, [2, 13], { generator, dtype: 'int64', device });
      losses.push((compiled ?? eager)(slice(tokens, 1, 0, 12), slice(tokens, 1, 1, 13)).item());
    });
  }
  const parameters = [...training.model.parameters()];
  const trained = {
    losses,
    gradients: parameters.map(({ grad }) => grad!.toTypedArray()),
    parameters: parameters.map((parameter) => parameter.toTypedArray()),
    replays: compiled?.cache.hits ?? 0,
  };
  compiled?.dispose();
  training.dispose();
  return trained;
}

/** Holds a training to another, bit by bit. */
export function expectSameBits(training: Trained, expected: Trained): void {
  expect(training.losses).toEqual(expected.losses);
  for (const what of ['gradients', 'parameters'] as const)
    expect(training[what].map(digest)).toEqual(expected[what].map(digest));
}

/** Millions of numbers are not compared one by one. */
function digest({ buffer, byteOffset, byteLength }: TypedArray): string {
  return createHash('sha1')
    .update(new Uint8Array(buffer, byteOffset, byteLength))
    .digest('hex');
}
