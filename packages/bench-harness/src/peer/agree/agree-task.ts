import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { device as openDevice, fromTypedArray, type Device, type Tensor } from '@roofline/tensor-core';
import { AdamW } from '@roofline/optim';
import { languageModelLoss, loadTensors, saveCheckpoint, TransformerLM } from '@roofline/transformer';
import type { CellTask } from '../../runner/cell-task.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { findPython } from '../find-python.ts';
import { runPythonProgram } from '../python-program.ts';
import type { AgreeJob, AgreeResult } from './agree-job.ts';

/** Runs one configuration here and in PyTorch, with the same weights and data, and compares all of it. */
export const agreeTask: CellTask<AgreeJob, Record<string, never>, AgreeResult> = {
  name: 'agree',
  async measure(job, { deviceLabel }) {
    const { executable, versions } = await findPython(['torch']);
    using folder = temporaryFolder('agree');
    const ours = runOurs(job, deviceLabel, folder.path);
    const theirs = await runTorch(executable, job, deviceLabel, folder.path);
    return { torch: versions[0]!, ...compare(ours, theirs) };
  },
};

type Outputs = Map<string, ArrayLike<number>>;

function runOurs(job: AgreeJob, deviceLabel: string, folder: string): Outputs {
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const model = new TransformerLM({ ...job.shape, contextLength: job.context }, { device, seed: job.seed });
  saveCheckpoint(model, join(folder, 'weights.safetensors'));
  const { learningRate, weightDecay } = job;
  const optimizer = new AdamW(model.parameters(), { learningRate, weightDecay });
  const [ids, targets] = [tokenTensor(job.ids, device), tokenTensor(job.targets, device)];

  const outputs: Outputs = new Map();
  outputs.set('logits', model.forward(ids).toFlatArray());
  for (let step = 0; step < job.steps; step++) {
    const loss = languageModelLoss(model, ids, targets);
    loss.backward();
    if (step === 0) {
      outputs.set('loss', [loss.item()]);
      for (const [name, parameter] of model.namedParameters()) {
        outputs.set(`gradient.${name}`, parameter.grad!.toFlatArray());
      }
    }
    optimizer.step();
    model.zeroGrad();
  }
  for (const [name, parameter] of model.namedParameters()) {
    outputs.set(`parameter.${name}`, parameter.toFlatArray());
  }
  return outputs;
}

function tokenTensor(tokens: readonly (readonly number[])[], device: Device): Tensor {
  const flat = BigInt64Array.from(tokens.flat(), BigInt);
  return fromTypedArray(flat, [tokens.length, tokens[0]!.length], { device });
}

/** Throws when PyTorch's side fails. */
async function runTorch(
  python: string,
  job: AgreeJob,
  deviceLabel: string,
  folder: string,
): Promise<Outputs> {
  const request = { ...job, config: job.shape, device: deviceLabel };
  writeFileSync(join(folder, 'job.json'), JSON.stringify(request));
  await runPythonProgram(python, 'torch_agree.py', [folder]);
  const { tensors } = loadTensors(join(folder, 'torch.safetensors'));
  return new Map(Object.entries(tensors).map(([name, tensor]) => [name, tensor.toFlatArray()]));
}

function compare(ours: Outputs, theirs: Outputs): Omit<AgreeResult, 'torch'> {
  const errors = (prefix: string) =>
    Object.fromEntries(
      [...ours.keys()]
        .filter((name) => name.startsWith(prefix))
        .map((name) => [name.slice(prefix.length), relativeError(ours.get(name)!, theirs.get(name)!)]),
    );
  const error = (name: string) => relativeError(ours.get(name)!, theirs.get(name)!);
  return {
    values: { logits: error('logits'), loss: error('loss') },
    gradients: errors('gradient.'),
    parameters: errors('parameter.'),
  };
}

/** ‖ours − theirs‖ / ‖theirs‖ with Euclidean norms in float64; Infinity where only theirs is all zeros. */
export function relativeError(ours: ArrayLike<number>, theirs: ArrayLike<number>): number {
  if (ours.length !== theirs.length) {
    throw new RangeError(`Cannot compare ${ours.length} elements with ${theirs.length}.`);
  }
  let difference = 0;
  let norm = 0;
  for (let index = 0; index < ours.length; index++) {
    difference += (ours[index]! - theirs[index]!) ** 2;
    norm += theirs[index]! ** 2;
  }
  return difference === 0 ? 0 : Math.sqrt(difference / norm);
}
