import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { afterAll, describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { type Tensor, exportOnnx } from '../../src/index.ts';

const folder = mkdtempSync(join(tmpdir(), 'roofline-onnx-'));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'model.onnx');

/** Runs the file by ONNX Runtime's own package. */
async function run(feeds: Record<string, Tensor>): Promise<InferenceSession.ReturnType> {
  const session = await InferenceSession.create(path);
  const given = Object.entries(feeds).map(([name, x]) => {
    const data = x.toTypedArray() as Float32Array;
    return [name, new OrtTensor(x.dtype as 'float32', data, x.shape)] as const;
  });
  return session.run(Object.fromEntries(given));
}

describe('exportOnnx', () => {
  it('writes a model that ONNX Runtime runs with the same result', async () => {
    const table = t.randn([7, 4], { generator: new t.Generator(1) });
    const weight = t.randn([4, 4], { generator: new t.Generator(2) }).requiresGrad_();
    const fn = (ids: Tensor) => {
      const h = t.embedding(table, ids);
      const scores = t.matmul(h, t.transpose(t.linear(h, weight), 1, 2));
      return { mixed: t.matmul(t.softmax(scores), h), first: t.select(h, 1, 0) };
    };
    const ids = t.tensor([[0, 3, 6], [2, 2, 1]], { dtype: 'int64' }); // prettier-ignore
    exportOnnx(path, fn, [ids], { inputNames: ['ids'], outputNames: ['mixed', 'first'] });
    const other = t.tensor([[5, 5, 0], [1, 6, 4]], { dtype: 'int64' }); // prettier-ignore
    const expected = t.noGrad(() => fn(other));
    const results = await run({ ids: other });
    expect(results['mixed']!.dims).toEqual([2, 3, 4]);
    expect(results['first']!.data).toEqual(expected.first.toTypedArray());
    (results['mixed']!.data as Float32Array).forEach((value, i) =>
      expect(value).toBeCloseTo(expected.mixed.toFlatArray()[i]!, 6),
    );
  });

  it('names what cannot be exported', () => {
    const x = t.ones([2, 2]);
    expect(() => exportOnnx(path, (y) => t.dropout(y!, { p: 0.5 }), [x])).toThrow(
      /exportOnnx: dropout has no nodes/,
    );
    expect(() => exportOnnx(path, (y) => t.sum(y!).item(), [x])).toThrow(/^exportOnnx: the host reads/);
    expect(() => exportOnnx(path, () => [3], [x])).toThrow(/^exportOnnx: the result\.0 is 3/);
    expect(() => exportOnnx(path, (y) => y, [x], { outputNames: ['a', 'b'] })).toThrow(/1 different names/);
  });

  it('refuses names that would make no model, and a function that gives nothing', () => {
    const x = t.ones([2, 2]);
    const double = (y?: Tensor) => t.mul(y!, 2);
    for (const names of [
      { inputNames: ['a'], outputNames: ['a'] },
      { inputNames: ['output_0'] },
      { inputNames: ['v0'] },
    ])
      expect(() => exportOnnx(path, double, [x], names)).toThrow(
        new RegExp(`each name must be that of one input or output alone.*"${names.inputNames[0]}"`),
      );
    expect(() => exportOnnx(path, (y) => void double(y), [x])).toThrow(/the function returns no tensor/);
  });

  it('leaves no memory behind', () => {
    const live = () => t.device('cpu').memoryStatistics().liveStorages;
    const x = t.ones([2, 2]);
    const before = live();
    exportOnnx(path, (y) => t.mul(y!, t.arange(2)), [x]);
    expect(() => exportOnnx(path, (y) => t.dropout(y!, { p: 0.5 }), [x])).toThrow(t.CompileError);
    expect(live()).toBe(before);
  });
});
