import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Generator,
  type Tensor,
  compile,
  exportOnnx,
  noGrad,
  randint,
  scope,
  select,
} from '@roofline/tensor-core';
import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { RMSNorm, TransformerLM } from '../src/index.ts';
import { expectSameBits, smallPresets, train, trainingDtypes } from './small-training.ts';

describe.each(smallPresets)('%s made small, compiled', (_, config) => {
  it.each(trainingDtypes)('trains for 20 steps as eager code does, bit by bit, in %s', (dtype) => {
    const [eager, compiled] = (['eager', 'compiled'] as const).map((execution) =>
      train(config, dtype, 'cpu', execution, 20),
    );
    expectSameBits(compiled!, eager!);
    expect(compiled!.replays).toBe(18);
  });
});

it('exportOnnx writes a model whose logits ONNX Runtime gives', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-model-'));
  try {
    const model = new TransformerLM(smallPresets[0]![1], { seed: 1 });
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
  const model = new TransformerLM(smallPresets[0]![1], { seed: 1 });
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

it('refuses to change between training and evaluating inside, where replays would not', () => {
  const model = new TransformerLM(smallPresets[0]![1], { seed: 1 });
  const evaluate = compile((ids: Tensor) => {
    const logits = model.eval().forward(ids);
    model.train();
    return logits;
  });
  const ids = randint(0, 61, [1, 12], { dtype: 'int64' });
  for (let i = 0; i < 2; i++)
    expect(() => noGrad(() => evaluate(ids))).toThrow(/eval\(\) changes a module.* Call it outside/);
  expect([...model.namedModules()].every(([, { training }]) => training)).toBe(true);
  // Where it is so already, nothing changes.
  model.eval();
  expect(noGrad(() => compile((x: Tensor) => model.eval().forward(x))(ids)).shape).toEqual([1, 12, 61]);
});

it('finds a parameter or a module that was put in the place of another', () => {
  const model = new TransformerLM(smallPresets[0]![1], { seed: 1 });
  const other = new TransformerLM(smallPresets[0]![1], { seed: 2 });
  const compiled = compile((ids: Tensor) => model.forward(ids));
  const ids = randint(0, 61, [1, 12], { dtype: 'int64' });
  const logitsOf = (forward: (ids: Tensor) => Tensor) =>
    noGrad(() => scope(() => forward(ids).toFlatArray()));
  const change = {
    nothing() {},
    'the head': () => ((model.lmHead as { weight: Tensor }).weight = other.lmHead.weight),
    'a block': () => ((model.layers as unknown[])[0] = other.layers[0]),
    'the last norm, of another eps': () =>
      ((model as { lnFinal: RMSNorm }).lnFinal = new RMSNorm(model.config.modelDimension, {}, 1)),
    'what is inside of a block': () => ((model.layers[1] as { ffn: unknown }).ffn = other.layers[1]!.ffn),
  };
  const seen = Object.values(change).map((make) => {
    make();
    const eager = logitsOf((x) => model.forward(x));
    for (let call = 0; call < 3; call++) expect(logitsOf(compiled)).toEqual(eager);
    return eager;
  });
  expect(new Set(seen.map(String)).size).toBe(5);
  expect(compiled.cache).toMatchObject({ misses: 5, hits: 10 });
});
