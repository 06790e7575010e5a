import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdamW, GradientScaler, clipGradientNorm } from '@roofline/optim';
import {
  type AutocastDType,
  Generator,
  type Tensor,
  autocast,
  compile,
  exportOnnx,
  noGrad,
  randint,
  scope,
  select,
  slice,
} from '@roofline/tensor-core';
import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { TransformerLM, languageModelLoss, presets } from '../src/index.ts';

/** A preset with its number of heads and its proportions, and few layers and features. */
const small = Object.entries(presets).map(([name, { heads, tieWordEmbeddings }]) => {
  const config = {
    vocabularySize: 61,
    contextLength: 12,
    modelDimension: 4 * heads,
    feedForwardDimension: 8 * heads,
    layers: 2,
    heads,
    ...(tieWordEmbeddings === undefined ? {} : { tieWordEmbeddings }),
  };
  return [name, config] as const;
});

class Training {
  readonly model: TransformerLM;
  readonly optimizer: AdamW;
  readonly #dtype: 'float32' | AutocastDType;
  readonly #scaler: GradientScaler;

  constructor(config: (typeof small)[number][1], dtype: 'float32' | AutocastDType) {
    this.model = new TransformerLM(config, { seed: 3 });
    this.optimizer = new AdamW(this.model.parameters(), { learningRate: 0.01 });
    this.#dtype = dtype;
    this.#scaler = new GradientScaler({ enabled: dtype === 'float16' });
  }

  step(ids: Tensor, targets: Tensor): Tensor {
    return scope(() => {
      const forward = () => languageModelLoss(this.model, ids, targets);
      const loss = this.#dtype === 'float32' ? forward() : autocast(this.#dtype, forward);
      this.#scaler.scale(loss).backward();
      this.#scaler.unscale(this.optimizer);
      clipGradientNorm(this.model.parameters(), 1);
      this.#scaler.step(this.optimizer);
      this.#scaler.update();
      this.optimizer.zeroGrad();
      return loss.detach();
    });
  }
}

describe.each(small)('%s made small, compiled', (_, config) => {
  it.each(['float32', 'bfloat16', 'float16'] as const)(
    'trains as eager code does, bit by bit, in %s',
    (dtype) => {
      const [eager, training] = [new Training(config, dtype), new Training(config, dtype)];
      const step = compile((ids: Tensor, targets: Tensor) => training.step(ids, targets));
      const generator = new Generator(5);
      for (let i = 0; i < 6; i++) {
        const tokens = randint(0, config.vocabularySize, [2, 13], { generator, dtype: 'int64' });
        const [ids, targets] = [slice(tokens, 1, 0, 12), slice(tokens, 1, 1, 13)];
        eager.optimizer.learningRate = training.optimizer.learningRate = 0.01 / (i + 1);
        expect(step(ids, targets).item()).toBe(eager.step(ids, targets).item());
      }
      expect(step.cache).toMatchObject({ hits: 4, misses: 2 });
      const [ours, theirs] = [training, eager].map(({ model }) =>
        [...model.parameters()].map((parameter) => parameter.toTypedArray()),
      );
      expect(ours).toEqual(theirs);
      step.dispose();
    },
  );
});

it('exportOnnx writes a model whose logits ONNX Runtime gives', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-model-'));
  try {
    const model = new TransformerLM(small[0]![1], { seed: 1 });
    const path = join(folder, 'model.onnx');
    const [ids, others] = [1, 2].map((seed) =>
      randint(0, 61, [1, 12], { generator: new Generator(seed), dtype: 'int64' }),
    ) as [Tensor, Tensor];
    exportOnnx(path, (x) => model.forward(x!), [ids], { inputNames: ['ids'], outputNames: ['logits'] });
    const session = await InferenceSession.create(path);
    const feed = new OrtTensor('int64', others.toTypedArray() as BigInt64Array, others.shape);
    const { logits } = await session.run({ ids: feed });
    const expected = noGrad(() => scope(() => model.forward(others).toFlatArray()));
    expect(logits!.dims).toEqual([1, 12, 61]);
    expected.forEach((value, i) => expect((logits!.data as Float32Array)[i]).toBeCloseTo(value as number, 5));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('an evaluating module is another program than a training one', () => {
  const model = new TransformerLM(small[0]![1], { seed: 1 });
  let runs = 0;
  const first = compile((ids: Tensor) => {
    runs++;
    return model.training ? select(model.forward(ids), 1, 0) : model.forward(ids);
  });
  const ids = randint(0, 61, [1, 12], { dtype: 'int64' });
  noGrad(() => {
    const shapes = [true, true, false, false, true].map(
      (training) => first((model.train(training), ids)).shape,
    );
    expect(shapes.map(({ length }) => length)).toEqual([2, 2, 3, 3, 2]);
  });
  expect(runs).toBe(2);
});
