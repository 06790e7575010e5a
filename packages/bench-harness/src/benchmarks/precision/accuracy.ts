import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Device, type Tensor, autocast, fromTypedArray, mul } from '@roofline/tensor-core';
import { TransformerLM, languageModelLoss, loadTensors, saveCheckpoint } from '@roofline/transformer';
import { z } from 'zod';
import { seededRandom } from '../../measuring/seeded-random.ts';
import { precompile } from '../../execution/precompile.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { peerPython } from '../../peer/cell-peer.ts';
import { runPythonProgram } from '../../peer/python-program.ts';
import { attentionFunction } from '../../attention/attention-function.ts';
import type { AccuracyCell, LowDType, ResultOf } from './parameters.ts';

const torchAnswer = z.object({
  torch: z.string(),
  /** In float64. */
  loss: z.number(),
  /** Of PyTorch's own autocast against float64: of the loss, relative; of each gradient, squared and absolute. */
  lossError: z.number(),
  squaredErrors: z.record(z.string(), z.number()),
});

/** Of the backward pass, as training has them; torch_precision.py has the same. */
const lossScales: Record<LowDType, number> = { float16: 65536, bfloat16: 1 };

interface SquaredNorms {
  readonly name: string;
  readonly exact: number;
  readonly ours: number;
  readonly theirs: number;
}

/** Loss and gradients of a model under autocast, ours and PyTorch's, against PyTorch in float64. */
export async function measureAccuracy(
  cell: AccuracyCell,
  device: Device,
  seed: number,
): Promise<ResultOf<'accuracy'>> {
  using scratch = temporaryFolder('accuracy');
  const folder = scratch.path;
  const { shape, batch, context, dtype, peerAttention } = cell;
  const attention = attentionFunction(cell.attention);
  const random = seededRandom(seed);
  const draw = () =>
    Array.from({ length: batch * context }, () => Math.floor(random() * shape.vocabularySize));
  const [ids, targets] = [draw(), draw()];
  using model = new TransformerLM({ ...shape, contextLength: context }, { device, seed, attention });
  saveCheckpoint(model, join(folder, 'weights.safetensors'));
  const job = {
    ...{ config: shape, batch, context, dtype, attention: peerAttention },
    ...{ device: device.label, ids, targets },
  };
  const torch = await runTorch(folder, job);

  const tokens = (values: number[]) =>
    fromTypedArray(BigInt64Array.from(values, BigInt), [batch, context], { device });
  const [givenIds, givenTargets] = [tokens(ids), tokens(targets)];
  const lossAndGradients = (): Tensor => {
    model.zeroGrad();
    const loss = autocast(dtype, () => languageModelLoss(model, givenIds, givenTargets));
    mul(loss, lossScales[dtype]).backward();
    return loss.detach();
  };
  const { execution } = cell;
  const run =
    execution === 'eager' ? lossAndGradients : precompile(device, lossAndGradients, execution).compiled;
  const loss = run();
  const { tensors: exact } = loadTensors(join(folder, 'exact.safetensors'));
  const norms = [...model.namedParameters()].map(([name, parameter]): SquaredNorms => {
    const theirs = torch.squaredErrors[name];
    if (theirs === undefined || !exact[name]) throw new Error(`PyTorch gave no gradient of ${name}.`);
    return { name, ...squaredError(parameter.grad!, exact[name], lossScales[dtype]), theirs };
  });
  return {
    study: 'accuracy',
    torch: torch.torch,
    ours: { loss: Math.abs(loss.item() / torch.loss - 1), gradients: relative(norms, 'ours') },
    theirs: { loss: torch.lossError, gradients: relative(norms, 'theirs') },
    worst: norms
      .map(({ name, ours, theirs }) => ({ parameter: name, ratio: Math.sqrt(ours / theirs) }))
      .reduce((a, b) => (b.ratio > a.ratio ? b : a)),
  };
}

async function runTorch(folder: string, job: object): Promise<z.infer<typeof torchAnswer>> {
  writeFileSync(join(folder, 'job.json'), JSON.stringify(job));
  await runPythonProgram(peerPython(), 'torch_precision.py', ['accuracy', folder]);
  return torchAnswer.parse(JSON.parse(readFileSync(join(folder, 'errors.json'), 'utf8')));
}

function squaredError(scaled: Tensor, exact: Tensor, scale: number): { exact: number; ours: number } {
  const [ours, reference] = [scaled.toTypedArray() as Float32Array, exact.toTypedArray() as Float32Array];
  let [error, norm] = [0, 0];
  for (let i = 0; i < ours.length; i++) {
    error += (ours[i]! / scale - reference[i]!) ** 2;
    norm += reference[i]! ** 2;
  }
  return { exact: norm, ours: error };
}

function relative(norms: readonly SquaredNorms[], whose: 'ours' | 'theirs'): number {
  const total = (key: keyof Omit<SquaredNorms, 'name'>) => norms.reduce((sum, norm) => sum + norm[key], 0);
  return Math.sqrt(total(whose) / total('exact'));
}
