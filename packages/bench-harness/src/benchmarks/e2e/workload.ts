import {
  autocast,
  Generator,
  noGrad,
  randint,
  range,
  scope,
  type Device,
  type Tensor,
} from '@roofline/tensor-core';
import { AdamW, GradientScaler } from '@roofline/optim';
import { countParameters, languageModelLoss, TransformerLM } from '@roofline/transformer';
import { attentionFunction } from '../../attention/attention-function.ts';
import type { Phase } from '../../measuring/timing.ts';
import type { E2eCell } from './parameters.ts';
import { phaseWork } from './phase-work.ts';
import type { E2eResult } from './result.ts';

/** The thing that is timed: a model, its batch and its optimizer on a device. */
export interface Workload {
  readonly parameterCount: number;
  readonly work: E2eResult['work'];
  step(phase: Phase): void;
  /** Runs one more step untimed and reads its loss; null in mode `forward`. */
  loss(): number | null;
}

export function createWorkload(cell: E2eCell, device: Device, seed: number): Workload {
  const config = { ...cell.shape, contextLength: cell.context };
  const attention = attentionFunction(cell.attention);
  const model = new TransformerLM(config, { device, seed, attention });
  const generator = new Generator(seed + 1);
  const tokens = () =>
    randint(0, config.vocabularySize, [cell.batch, cell.context], { generator, device, dtype: 'int64' });
  const [ids, targets] = [tokens(), tokens()];
  const optimizer = cell.mode === 'train-step' ? new AdamW(model.parameters()) : null;
  const scaler = new GradientScaler({ enabled: optimizer !== null && cell.dtype === 'float16' });

  const inPrecision = <T>(fn: () => T): T => (cell.dtype === 'float32' ? fn() : autocast(cell.dtype, fn));
  const forwardLoss = (): Tensor => inPrecision(() => languageModelLoss(model, ids, targets));
  const optimize = (optimizer: AdamW): void => {
    scaler.step(optimizer);
    scaler.update();
  };
  const trainStep = (phase: Phase): void =>
    scope(() => {
      const loss = phase('forward', () => range('forward', forwardLoss));
      phase('backward', () => range('backward', () => scaler.scale(loss).backward()));
      if (optimizer) phase('optimizer', () => range('optimizer', () => optimize(optimizer)));
      (optimizer ?? model).zeroGrad();
    });
  const forwardStep = (phase: Phase): void =>
    scope(() => {
      phase('forward', () => range('forward', () => noGrad(() => inPrecision(() => model.forward(ids)))));
    });

  return {
    parameterCount: countParameters(config),
    work: phaseWork(config, cell.batch, cell.mode, cell.dtype),
    step: cell.mode === 'forward' ? forwardStep : trainStep,
    loss: () => (cell.mode === 'forward' ? null : noGrad(() => scope(() => forwardLoss().item()))),
  };
}
