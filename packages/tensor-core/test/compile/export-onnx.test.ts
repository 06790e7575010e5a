import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { afterAll, describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { type Tensor, exportOnnx } from '../../src/index.ts';
import { sampleSizes } from '../../src/compile/dynamic-axes.ts';
import { sizesOfAxis } from '../../src/onnx/size-polynomial.ts';

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

  it('gives each input its own name', async () => {
    const [x, y] = [t.tensor([5, 7]), t.tensor([1, 2])];
    exportOnnx(path, (a, b) => t.sub(a!, b!), [x, y]);
    const { output_0 } = await run({ input_0: x, input_1: y });
    expect(output_0!.data).toEqual(Float32Array.of(4, 5));
  });

  it.each<[unknown]>([
    ['ab'],
    [['a']],
    [['a', 'a']],
    [['a', 'b', 'b']],
    [['a', '']],
    [['a', 3]],
    [{ length: 2 }],
  ])('refuses %j as names of two inputs', (inputNames) => {
    const given = { inputNames: inputNames as string[] };
    const call = () => exportOnnx(path, (x, y) => t.add(x!, y!), [t.ones([2]), t.ones([2])], given);
    expect(call).toThrow(/inputNames must be 2 different names/);
  });

  it('says whether an op has no nodes at all, or none for the memory that it writes', () => {
    const x = t.ones([4]);
    const writesPart = (y?: Tensor) => (
      t.addInPlace(t.slice(y!, 0, 0, 2), t.slice(y!, 0, 2, 4)),
      t.mul(y!, 2)
    );
    expect(() => exportOnnx(path, writesPart, [x])).toThrow(/no nodes in ONNX for what it reads and writes/);
    expect(() => exportOnnx(path, (y) => t.dropout(y!, { p: 0.5 }), [x])).toThrow(/no nodes in ONNX; export/);
  });

  it('refuses results that no node gives', () => {
    const x = t.ones([4]);
    expect(() => exportOnnx(path, (y) => (t.mul(y!, 2), t.empty([2])), [x])).toThrow(
      /\[2\] .*is in no graph/,
    );
  });

  it('leaves dimensions open that have a name, and calculates shapes from them', async () => {
    const table = t.randn([9, 8], { generator: new t.Generator(1) });
    const weight = t.randn([8, 8], { generator: new t.Generator(2) });
    const fn = (ids: Tensor) => {
      const [batch, length] = ids.shape as [number, number];
      const h = t.embedding(table, ids);
      const q = t.transpose(t.reshape(t.linear(h, weight), [batch, length, 2, 4]), 1, 2);
      const scores = t.matmul(q, t.transpose(q, 2, 3));
      const mixed = t.matmul(t.softmax(scores), q);
      return {
        mixed: t.reshape(t.transpose(mixed, 1, 2), [batch * length, 8]),
        mean: t.mean(h, { dims: [1] }),
      };
    };
    const idsOf = (batch: number, length: number) =>
      t.fromTypedArray(
        BigInt64Array.from({ length: batch * length }, (_, i) => BigInt((i * 5) % 9)),
        [batch, length],
      );
    exportOnnx(path, fn, [idsOf(2, 7)], {
      ...{ inputNames: ['ids'], outputNames: ['mixed', 'mean'] },
      dynamicAxes: { ids: { 0: 'batch', 1: 'sequence' } },
    });
    for (const [batch, length] of [
      [1, 1],
      [2, 7],
      [3, 20],
    ] as const) {
      // prettier-ignore
      const ids = idsOf(batch, length);
      const expected = t.noGrad(() => fn(ids));
      const results = await run({ ids });
      for (const name of ['mixed', 'mean'] as const) {
        expect(results[name]!.dims).toEqual(expected[name].shape);
        const values = expected[name].toFlatArray();
        (results[name]!.data as Float32Array).forEach((value, i) => expect(value).toBeCloseTo(values[i]!, 5));
      }
    }
    const { inputMetadata, outputMetadata } = await InferenceSession.create(path);
    expect(inputMetadata[0]).toMatchObject({ name: 'ids', shape: ['batch', 'sequence'] });
    expect(outputMetadata[1]).toMatchObject({ name: 'mean', shape: ['batch', 8] });
  });

  it('counts what is made by counting at every size', async () => {
    const fn = (x: Tensor) => {
      const length = x.shape[1]!;
      const positions = t.mul(t.arange(1, 2 * length, 2), 3);
      const mask = t.lessEqual(t.arange(length), t.reshape(t.arange(length), [length, 1]));
      return t.mul(t.cast(mask, 'float32'), t.add(t.matmul(t.transpose(x, 0, 1), x), positions));
    };
    exportOnnx(path, fn as (x?: Tensor) => Tensor, [t.ones([2, 9])], {
      dynamicAxes: { input_0: { 1: 'length' } },
    });
    for (const length of [1, 4, 30]) {
      const x = t.randn([2, length], { generator: new t.Generator(length) });
      const { output_0 } = await run({ input_0: x });
      const expected = fn(x).toFlatArray();
      (output_0!.data as Float32Array).forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 4));
    }
  });

  it('says why something is not for every size', () => {
    const x = t.ones([2, 7]);
    const named = { dynamicAxes: { input_0: { 1: 'length' } } };
    const scaled = (y?: Tensor) => t.mul(y!, 1 / y!.shape[1]!);
    expect(() => exportOnnx(path, scaled, [x], named)).toThrow(
      /^exportOnnx: what it exports is not for every length: Mul reads a constant, float32 \[.*\], that depends on sizes/,
    );
    const other = (y?: Tensor) => (y!.shape[1]! > 4 ? t.exp(y!) : t.exp(t.exp(y!)));
    expect(() => exportOnnx(path, other, [x], named)).toThrow(/it runs other ops at other sizes/);
  });

  it.each([
    [{ ids: { 0: 'batch' } }, 'by names of inputs, which are input_0'],
    [{ input_0: { 2: 'batch' } }, 'a dimension of input_0, which has 2'],
    [{ input_0: { '-1': 'batch' } }, 'a dimension of input_0, which has 2'],
    [{ input_0: { 0.5: 'batch' } }, 'a dimension of input_0, which has 2'],
    [{ input_0: { 0: '' } }, 'a name for each dimension'],
    [{ input_0: { 0: 3 as never } }, 'a name for each dimension'],
    [{ input_0: { 0: 'n', 1: 'n' } }, 'names of equal lengths; n stands for several'],
  ])('refuses dynamic axes %j', (dynamicAxes, message) => {
    expect(() => exportOnnx(path, (y) => y, [t.ones([2, 3])], { dynamicAxes })).toThrow(message);
  });

  it('takes inputs whose dimensions have no names', async () => {
    const dynamicAxes = { input_0: undefined as never, input_1: { 0: 'n' } };
    exportOnnx(path, (x, y) => t.add(x!, y!), [t.ones([1]), t.ones([4])], { dynamicAxes });
    const { output_0 } = await run({ input_0: t.full([1], 2), input_1: t.ones([7]) });
    expect(output_0!.dims).toEqual([7]);
  });

  it.each([
    [20, -1],
    [sizesOfAxis + 3, -1],
    [sizesOfAxis + 2, 1],
    [1, 1],
  ])('looks at a dimension of %i, and at sizes near it of more than one', (size, step) => {
    const samples = sampleSizes([{ name: 'n', places: [{ input: 0, dimension: 0 }] }], [t.ones([size])]);
    const expected = Array.from({ length: sizesOfAxis + 1 }, (_, i) => [size + step * (i + 1)]);
    expect(samples).toEqual(expected);
  });

  it('leaves no memory behind', () => {
    const live = () => t.device('cpu').memoryStatistics().liveStorages;
    const x = t.ones([2, 2]);
    const before = live();
    exportOnnx(path, (y) => t.mul(y!, t.arange(2)), [x]);
    exportOnnx(path, (y) => t.mul(y!, 2), [x], { dynamicAxes: { input_0: { 0: 'n' } } });
    expect(() => exportOnnx(path, (y) => t.dropout(y!, { p: 0.5 }), [x])).toThrow(t.CompileError);
    expect(live()).toBe(before);
  });
});
