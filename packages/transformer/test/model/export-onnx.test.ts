import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportOnnx, fromTypedArray, noGrad } from '@roofline/tensor-core';
import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { expect, it, onTestFinished } from 'vitest';
import { TransformerLM } from '../../src/index.ts';

const idsOf = (batch: number, length: number) =>
  fromTypedArray(
    BigInt64Array.from({ length: batch * length }, (_, i) => BigInt((i * 7) % 50)),
    [batch, length],
  );

it('a language model is exported for every batch and context, and runs in ONNX Runtime at others', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-export-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'model.onnx');
  const shape = { modelDimension: 32, feedForwardDimension: 64, layers: 2, heads: 4, vocabularySize: 50 };
  const model = new TransformerLM({ ...shape, contextLength: 40 }, { seed: 1 });
  exportOnnx(path, (ids) => model.forward(ids!), [idsOf(2, 40)], {
    ...{ inputNames: ['ids'], outputNames: ['logits'] },
    dynamicAxes: { ids: { 0: 'batch', 1: 'sequence' } },
  });
  // ONNX's own operators alone.
  expect(readFileSync(path).includes('com.microsoft')).toBe(false);
  const session = await InferenceSession.create(path);
  for (const [batch, length] of [
    [2, 16],
    [1, 5],
    [3, 40],
  ] as const) {
    // prettier-ignore
    const ids = idsOf(batch, length);
    const expected = noGrad(() => model.forward(ids)).toFlatArray();
    const given = new OrtTensor('int64', ids.toTypedArray() as BigInt64Array, ids.shape);
    const { logits } = await session.run({ ids: given });
    expect(logits!.dims).toEqual([batch, length, 50]);
    (logits!.data as Float32Array).forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 4));
  }
});
