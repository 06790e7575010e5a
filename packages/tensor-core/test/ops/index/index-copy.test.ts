import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor as OnnxTensor } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { describeIndexCopy } from '../../op-cases/index/index-copy.ts';
import { sample, tensorOf } from '../../op-cases/support/samples.ts';

const cpu = () => t.device('cpu');

describe('indexCopyInPlace on the CPU', () => {
  describeIndexCopy(cpu);

  it('has the gradient that finite differences show', () => {
    t.scope(() => {
      const index = tensorOf([3, 0], [2], 'int64', cpu());
      const written = (target: t.Tensor, source: t.Tensor) => {
        const y = t.sin(target);
        t.indexCopyInPlace(y, 1, index, t.cos(source));
        return t.mul(y, y);
      };
      const inputs = [[2, 4, 3], [2, 2, 3]].map((shape, seed) => sample(shape, { dtype: 'float64', seed }, cpu())); // prettier-ignore
      t.checkGradients(written as never, inputs);
    });
  });

  it('is a node of ONNX in a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-index-copy-'));
    try {
      const path = join(folder, 'model.onnx');
      const [x, row] = [sample([3, 4], {}, cpu()), sample([1, 4], { seed: 2 }, cpu())];
      const at = tensorOf([2], [1], 'int64', cpu());
      const fn = (target: t.Tensor, index: t.Tensor, source: t.Tensor) => {
        const y = t.mul(target, 2);
        t.indexCopyInPlace(y, 0, index, source);
        return t.add(y, 1);
      };
      t.exportOnnx(path, fn, [x, at, row]);
      const session = await InferenceSession.create(path);
      const fed = (tensor: t.Tensor, dtype: 'float32' | 'int64') =>
        new OnnxTensor(dtype, tensor.toTypedArray() as never, tensor.shape);
      const { output_0: output } = await session.run({
        input_0: fed(x, 'float32'),
        input_1: fed(at, 'int64'),
        input_2: fed(row, 'float32'),
      });
      expect([...(output!.data as Float32Array)]).toEqual(fn(x, at, row).toFlatArray());
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
