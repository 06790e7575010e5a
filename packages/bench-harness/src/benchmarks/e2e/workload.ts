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
import { type Precompiled, precompile } from '../../execution/precompile.ts';
import type { Phase } from '../../measuring/timing.ts';
import { noBudget, policyOf } from '../../memory-saving/kinds.ts';
import type { E2eCell } from './parameters.ts';
import { phaseWork } from './phase-work.ts';
import type { E2eResult } from './result.ts';

/** The thing that is timed: a model, its batch and its optimizer on a device. */
export interface Workload {
  readonly parameterCount: number;
  readonly work: E2eResult['work'];
  step(phase: Phase): void;
  /** The step without its program, on the same parameters. */
  eagerStep(phase: Phase): void;
  /** Makes a program of a step that runs compiled, as its first run would; does nothing for an eager one. */
  compile(): void;
  /** Null before `compile`, and for an eager step. */
  readonly program: Precompiled | null;
  /** Runs one more step untimed and reads its loss; null in mode `forward`. */
  loss(): number | null;
  /** Frees what it holds on the device. */
  dispose(): void;
}

export function createWorkload(cell: E2eCell, device: Device, seed: number): Workload {
  const config = { ...cell.shape, contextLength: cell.context };
  const attention = attentionFunction(cell.attention);
  const recompute = policyOf(cell.recompute)!;
  const model = new TransformerLM(config, { device, seed, attention, recompute });
  const generator = new Generator(seed + 1);
  const tokens = () =>
    randint(0, config.vocabularySize, [cell.batch, cell.context], { generator, device, dtype: 'int64' });
  const [ids, targets] = [tokens(), tokens()];
  const optimizer = cell.mode === 'train-step' ? new AdamW(model.parameters()) : null;
  const scaler = new GradientScaler({ enabled: optimizer !== null && cell.dtype === 'float16' });

  const inPrecision = <T>(fn: () => T): T => (cell.dtype === 'float32' ? fn() : autocast(cell.dtype, fn));
  const forwardLoss = (): Tensor =>
    inPrecision(() => languageModelLoss(model, ids, targets, { logits: cell.logits }));
  const optimize = (optimizer: AdamW): void => {
    scaler.step(optimizer);
    scaler.update();
  };
  const train = (phase: Phase): Tensor => {
    const loss = phase('forward', () => range('forward', forwardLoss));
    phase('backward', () => range('backward', () => scaler.scale(loss).backward()));
    if (optimizer) phase('optimizer', () => range('optimizer', () => optimize(optimizer)));
    return loss.detach();
  };
  const forward = (phase: Phase): Tensor =>
    phase('forward', () => range('forward', () => noGrad(() => inPrecision(() => model.forward(ids)))));
  const eagerStep = (phase: Phase): void =>
    scope(() => {
      if (cell.mode === 'forward') return void forward(phase);
      train(phase);
      (optimizer ?? model).zeroGrad();
    });
  /** A program leaves out what is never read: it gives its loss or logits, and gradients that no optimizer has used. */
  const seenStep = (): Tensor => {
    if (cell.mode === 'forward') return forward(unphased);
    if (!optimizer) model.zeroGrad();
    const loss = train(unphased);
    optimizer?.zeroGrad();
    return loss;
  };
  let program: Precompiled | null = null;
  const { execution } = cell;
  const memoryBudget = cell.memoryBudget === noBudget ? undefined : cell.memoryBudget;
  const compiledStep =
    execution === 'eager'
      ? null
      : () => (program ??= precompile(device, seenStep, execution, memoryBudget)).call;
  return {
    parameterCount: countParameters(config),
    work: phaseWork(config, cell.batch, cell.mode, cell.dtype),
    step: compiledStep ? () => compiledStep()() : eagerStep,
    eagerStep,
    compile: () => void compiledStep?.(),
    get program() {
      return program;
    },
    // A program has its memory; an eager pass on top of it would need more.
    loss: () =>
      cell.mode === 'forward'
        ? null
        : scope(() => (program ? program.compiled()!.item() : noGrad(() => forwardLoss().item()))),
    dispose() {
      program?.compiled.dispose();
      optimizer?.dispose();
      for (const each of [scaler, model, ids, targets]) each.dispose();
    },
  };
}

/** The phases of a program are not timed apart. */
const unphased: Phase = (_, work) => work();
