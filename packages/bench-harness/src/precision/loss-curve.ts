import { type Device, type Tensor, autocast, fromTypedArray, scope } from '@roofline/tensor-core';
import { AdamW, GradientScaler, clipGradientNorm, cosineSchedule } from '@roofline/optim';
import { TransformerLM, languageModelLoss } from '@roofline/transformer';
import type { E2eDType } from '../e2e/parameters.ts';

// The example of @roofline/transformer, examples/overfit.ts: one text to be known by heart, byte by byte.
const text =
  'It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, ' +
  'it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of ' +
  'Darkness, it was the spring of hope, it was the winter of despair.';
const config = {
  vocabularySize: 256,
  contextLength: 64,
  modelDimension: 64,
  feedForwardDimension: 192,
  layers: 2,
  heads: 4,
};
const batch = 8;

export interface LossCurve {
  readonly losses: number[];
  /** Steps that the loss scaling left out. */
  readonly skipped: number;
}

/** The loss of every step of the overfitting example in one precision; float16 with dynamic loss scaling. */
export function lossCurve(
  device: Device,
  dtype: E2eDType,
  steps: number,
  onStep: (done: number) => void = () => {},
): LossCurve {
  const model = new TransformerLM(config, { device, seed: 1 });
  const optimizer = new AdamW(model.parameters(), { weightDecay: 0.01 });
  const scaler = new GradientScaler({ enabled: dtype === 'float16' });
  const warmupSteps = Math.min(20, steps);
  const schedule = cosineSchedule({ maximum: 3e-3, minimum: 3e-4, warmupSteps, totalSteps: steps });
  const losses: number[] = [];
  let skipped = 0;
  for (let step = 0; step < steps; step++) {
    optimizer.learningRate = schedule(step);
    scope(() => {
      const { ids, targets } = windows(step, device);
      const forward = () => languageModelLoss(model, ids, targets);
      const loss = dtype === 'float32' ? forward() : autocast(dtype, forward);
      scaler.scale(loss).backward();
      scaler.unscale(optimizer);
      clipGradientNorm(model.parameters(), 1);
      if (!scaler.step(optimizer)) skipped++;
      scaler.update();
      optimizer.zeroGrad();
      losses.push(loss.item());
    });
    onStep(step + 1);
  }
  optimizer.dispose();
  model.dispose();
  return { losses, skipped };
}

/** Windows of the text at places that move on with each step, and the bytes that follow each of theirs. */
function windows(step: number, device: Device): { ids: Tensor; targets: Tensor } {
  const bytes = Buffer.from(text);
  const { contextLength } = config;
  const starts = Array.from(
    { length: batch },
    (_, b) => ((step * batch + b) * 31) % (bytes.length - contextLength),
  );
  const tokens = (shift: number) => {
    const ids = starts.flatMap((start) => [...bytes.subarray(start + shift, start + shift + contextLength)]);
    return fromTypedArray(Int32Array.from(ids), [batch, contextLength], { device });
  };
  return { ids: tokens(0), targets: tokens(1) };
}
