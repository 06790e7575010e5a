import { type Device, type Tensor, autocast, compile, scope } from '@roofline/tensor-core';
import { AdamW, GradientScaler, clipGradientNorm, cosineSchedule } from '@roofline/optim';
import { TransformerLM, byteWindows, languageModelLoss, overfitExample } from '@roofline/transformer';
import type { LossCell } from './parameters.ts';

const { text, config, batch } = overfitExample;

export interface LossCurve {
  readonly losses: number[];
  /** Steps that the loss scaling left out. */
  readonly skipped: number;
}

/** The loss of every step of the overfitting example in one precision; float16 with dynamic loss scaling. */
export function lossCurve(
  device: Device,
  { dtype, execution }: Pick<LossCell, 'dtype' | 'execution'>,
  steps: number,
  onStep: (done: number) => void = () => {},
): LossCurve {
  const model = new TransformerLM(config, { device, seed: 1 });
  const optimizer = new AdamW(model.parameters(), { weightDecay: 0.01 });
  const scaler = new GradientScaler({ enabled: dtype === 'float16' });
  const warmupSteps = Math.min(20, steps);
  const schedule = cosineSchedule({ maximum: 3e-3, minimum: 3e-4, warmupSteps, totalSteps: steps });
  const train = (ids: Tensor, targets: Tensor): Tensor => {
    const forward = () => languageModelLoss(model, ids, targets);
    const loss = dtype === 'float32' ? forward() : autocast(dtype, forward);
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    clipGradientNorm(model.parameters(), 1);
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const compiled = execution === 'eager' ? null : compile(train, { autotune: execution === 'autotuned' });
  const losses: number[] = [];
  let skipped = 0;
  for (let step = 0; step < steps; step++) {
    optimizer.learningRate = schedule(step);
    const { scale } = scaler.stateDict();
    scope(() => {
      const windows = byteWindows(text, { step, batch, contextLength: config.contextLength, device });
      losses.push((compiled ?? train)(windows.ids, windows.targets).item());
    });
    // Only a step that is left out lowers it.
    if (scaler.stateDict().scale < scale) skipped++;
    onStep(step + 1);
  }
  compiled?.dispose();
  scaler.dispose();
  optimizer.dispose();
  model.dispose();
  return { losses, skipped };
}
