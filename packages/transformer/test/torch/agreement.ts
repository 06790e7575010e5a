import { type DeviceSpec, type Tensor, copyInPlace, noGrad, scope } from '@roofline/tensor-core';
import { AdamW } from '@roofline/optim';
import { type ModelConfig, TransformerLM, languageModelLoss, loadTensors } from '../../src/index.ts';

/** Relative errors by norm against what PyTorch wrote; the worst over all parameters where there are several. */
export interface Disagreement {
  readonly logits: number;
  readonly loss: number;
  readonly gradients: number;
  readonly updated: number;
}

interface TorchOptimizer {
  readonly lr: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weight_decay: number;
}

const steps = 3;

/** Runs on `device` what reference.py ran, from the weights and ids in its file, and compares the results. */
export function compareWithReference(path: string, device: DeviceSpec): Disagreement {
  const reference = loadTensors(path, { device });
  const theirs = reference.tensors;
  const config = JSON.parse(reference.metadata['config']!) as ModelConfig;
  const { lr, betas, eps, weight_decay } = JSON.parse(reference.metadata['optimizer']!) as TorchOptimizer;
  const model = new TransformerLM(config, { device });
  noGrad(() => {
    for (const [name, parameter] of model.namedParameters())
      copyInPlace(parameter, theirs[`weights.${name}`]!);
  });
  const optimizer = new AdamW(model.parameters(), {
    learningRate: lr,
    betas,
    eps,
    weightDecay: weight_decay,
  });

  const logits = noGrad(() => relativeError(model.forward(theirs['ids']!), theirs['logits']!));
  const worst = (kind: string, of: (parameter: Tensor) => Tensor) =>
    Math.max(
      ...[...model.namedParameters()].map(([name, p]) => relativeError(of(p), theirs[`${kind}.${name}`]!)),
    );
  const losses: number[] = [];
  let gradients = NaN;
  for (let step = 0; step < steps; step++) {
    scope(() => {
      const loss = languageModelLoss(model, theirs['ids']!, theirs['targets']!);
      losses.push(relativeError(loss, theirs['loss']!));
      loss.backward();
    });
    if (step === 0) gradients = worst('gradients', (parameter) => parameter.grad!);
    optimizer.step();
    optimizer.zeroGrad();
  }
  return { logits, loss: losses[0]!, gradients, updated: worst('updated', (parameter) => parameter) };
}

/** ‖ours - theirs‖ / ‖theirs‖. */
export function relativeError(ours: Tensor, theirs: Tensor): number {
  const [a, b] = [ours.toFlatArray(), theirs.toFlatArray()];
  const squares = (values: readonly number[]) => values.reduce((sum, x) => sum + x * x, 0);
  return Math.sqrt(squares(a.map((x, i) => x - b[i]!)) / squares(b));
}
