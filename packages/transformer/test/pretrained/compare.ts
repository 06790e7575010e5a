import { join } from 'node:path';
import { type Tensor, noGrad, scope } from '@roofline/tensor-core';
import {
  SafetensorsFile,
  type TransformerLM,
  generate,
  languageModelLoss,
  loadTensors,
  savePretrained,
} from '../../src/index.ts';
import { relativeError } from '../torch/agreement.ts';

/** Relative errors by norm against golden.safetensors of a folder; of gradients that of the worst tensor. */
export interface PretrainedErrors {
  readonly logits: number;
  readonly loss: number;
  readonly gradients: number;
  /** Whether greedy tokens are the same, with a cache, without, and compiled. */
  readonly greedy: boolean;
}

/** What a loaded model calculates beside the golden file of its folder; its gradients are stored in `scratch` as weights are. */
export function compareWithGolden(model: TransformerLM, folder: string, scratch: string): PretrainedErrors {
  const { device } = model.lmHead.weight;
  const theirs = loadTensors(join(folder, 'golden.safetensors'), { device }).tensors;
  const { ids, targets } = theirs as { ids: Tensor; targets: Tensor };
  const logits = noGrad(() => relativeError(model.forward(ids), theirs['logits']!));
  const loss = scope(() => {
    const ours = languageModelLoss(model, ids, targets);
    ours.backward();
    return relativeError(ours, theirs['loss']!);
  });
  const prompt = ids.toFlatArray().slice(ids.shape[1], ids.shape[1]! + 4);
  const expected = theirs['greedy']!.toFlatArray().join();
  const ways = [{ useCache: true }, { useCache: false }, { compile: true }];
  const greedy = ways.every(
    (way) =>
      generate(model, prompt, { temperature: 0, maxNewTokens: theirs['greedy']!.size, ...way }).join() ===
      expected,
  );
  return { logits, loss, gradients: worstGradient(model, theirs, scratch), greedy };
}

function worstGradient(
  model: TransformerLM,
  theirs: Readonly<Record<string, Tensor>>,
  scratch: string,
): number {
  const gradients = [...model.namedParameters()].map(([name, parameter]) => [name, parameter.grad!.detach()]);
  model.loadStateDict(Object.fromEntries(gradients) as Record<string, Tensor>);
  savePretrained(model, scratch);
  const ours = loadTensors(join(scratch, 'model.safetensors')).tensors;
  const names = Object.keys(theirs).filter((name) => name.startsWith('gradients.'));
  using file = new SafetensorsFile(join(scratch, 'model.safetensors'));
  if (file.tensors.size !== names.length)
    throw new Error(`${file.tensors.size} tensors were stored, not ${names.length}.`);
  return Math.max(
    ...names.map((name) => relativeError(ours[name.slice('gradients.'.length)]!, theirs[name]!)),
  );
}
