import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { observers } from '../../../src/op/observers.ts';

/** One small step with ranges, on the CPU. */
function step(): void {
  t.scope(() => {
    const x = t.ones([4, 8]);
    const weight = t.full([8, 2], 0.5, { requiresGrad: true });
    const loss = t.range('forward', () =>
      t.range('attention.scores', () => t.sum(t.softmax(t.matmul(x, weight), -1))),
    );
    t.range('backward', () => loss.backward());
  });
}

describe('profile on the CPU', () => {
  it('gives each op its time, its ONNX nodes, its cost and the ranges around it', async () => {
    const profile = await t.profile(step);
    const named = (name: string) => profile.ops.findIndex((op) => op.name === name);
    const product = named('matmul');
    expect(profile.ops[product]).toMatchObject({
      isMatrixProduct: true,
      dtype: 'float32',
      cost: { flops: 2 * 4 * 8 * 2, bytesMoved: 4 * (4 * 8 + 8 * 2 + 4 * 2) },
    });
    expect(t.rangePath(profile, profile.ops[product]!.range)).toEqual(['forward', 'attention.scores']);
    const kernel = profile.kernels.find(({ op }) => op === product)!;
    expect(kernel).toMatchObject({ name: 'Gemm', kind: 'kernel', stream: 'cpu' });
    expect(kernel.durationUs).toBeGreaterThan(0);
    expect(profile.ops[named('softmax')]!.isMatrixProduct).toBe(false);
    expect(profile.ops.filter((_, op) => !profile.kernels.some((each) => each.op === op))).toEqual([]);
    expect(profile.droppedRecords).toBe(0);
  });

  it('divides an op over its ONNX nodes', async () => {
    const x = t.ones([64, 512]);
    const silu = () => t.scope(() => void t.silu(x));
    silu();
    for (let round = 0; round < 2; round++) {
      const { kernels, ops } = await t.profile(() => {
        silu();
        silu();
      });
      expect(ops.map(({ name }) => name)).toEqual(['silu', 'silu']);
      expect(kernels.map(({ name, op }) => [name, op])).toEqual([
        ...['Neg', 'Exp', 'Add', 'Div'].map((node) => [node, 0]),
        ...['Neg', 'Exp', 'Add', 'Div'].map((node) => [node, 1]),
      ]);
    }
  });

  it('leaves out an op that threw, and keeps what came after it', async () => {
    const outside = t.fromTypedArray(new BigInt64Array([7n]), [1]);
    const [table, x] = [t.ones([3, 4]), t.ones([2, 5])];
    const { ops, kernels } = await t.profile(() =>
      t.scope(() => {
        expect(() => t.embedding(table, outside)).toThrow('outside a table');
        t.exp(x);
      }),
    );
    expect(ops.map(({ name, cost }) => [name, cost.bytesMoved])).toEqual([['exp', 2 * 4 * 10]]);
    expect(kernels.map(({ op }) => op)).toEqual([0]);
  });

  it('reports ops that run in JavaScript by their own name', async () => {
    const ids = t.fromTypedArray(new BigInt64Array([1n, 0n]), [2]);
    const table = t.ones([3, 4]);
    const { kernels } = await t.profile(() => t.scope(() => void t.embedding(table, ids)));
    expect(kernels.map(({ name }) => name)).toContain('embedding (JavaScript)');
  });

  it('leaves no file and no session behind', async () => {
    const folders = () =>
      readdirSync(tmpdir()).filter((name) => name.startsWith(`roofline-nodes-${process.pid}-`));
    const before = folders();
    await t.profile(step);
    await expect(t.profile(() => Promise.reject(new Error('stop')))).rejects.toThrow('stop');
    expect(folders()).toEqual(before);
  });

  it('keeps kernels within the wall time, in order and without overlap', async () => {
    const { kernels, wallUs } = await t.profile(step);
    kernels.forEach(({ startUs, durationUs }, i) => {
      expect(startUs).toBeGreaterThanOrEqual(
        i === 0 ? 0 : kernels[i - 1]!.startUs + kernels[i - 1]!.durationUs,
      );
      expect(startUs + durationUs).toBeLessThanOrEqual(wallUs);
    });
  });

  it('opens the ranges of the forward pass again in the backward pass', async () => {
    const profile = await t.profile(step);
    const backward = profile.ops.map(({ range }) => t.rangePath(profile, range).join('/'));
    expect(backward).toContain('backward/attention.scores');
    // Ops that follow each other share their ranges, as they did in the forward pass.
    expect(profile.ranges.map(({ name }) => name)).toEqual([
      'forward',
      'attention.scores',
      'backward',
      'attention.scores',
    ]);
  });

  it('opens the ranges of a compiled function once a call, as eager calls do', async () => {
    const x = t.ones([4]);
    const layers = (y: t.Tensor) => {
      const inner = t.range('layer', () => t.range('norm', () => t.exp(t.exp(y))));
      return t.range('layer', () => t.range('norm', () => t.exp(inner)));
    };
    const call = t.compile(layers);
    while (call.cache.hits === 0) call(x).dispose();
    const openings = async (fn: typeof layers) => {
      const { ranges } = await t.profile(() =>
        t.scope(() => t.range('loop', () => [1, 2, 3].forEach(() => fn(x)))),
      );
      return ranges;
    };
    const eager = await openings(layers);
    expect(eager.map(({ name }) => name)).toEqual([
      'loop',
      ...Array.from({ length: 6 }, () => ['layer', 'norm']).flat(),
    ]);
    expect(await openings(call)).toEqual(eager);
  });

  it('opens the ranges of the forward pass again in each of several backward passes', async () => {
    const weight = t.ones([4], { requiresGrad: true });
    const lossOf = () => t.range('forward', () => t.range('model', () => t.sum(t.exp(weight))));
    const { ranges } = await t.profile(() =>
      t.scope(() => {
        const losses = [lossOf(), lossOf(), lossOf()];
        t.range('backward', () => losses.forEach((loss) => loss.backward()));
      }),
    );
    const backward = ranges.findIndex(({ name }) => name === 'backward');
    expect(ranges.filter(({ parent }) => parent === backward)).toHaveLength(3);
  });

  it('refuses to begin inside another, and ends when what it runs throws', async () => {
    await t.profile(async () => {
      await expect(t.profile(step)).rejects.toThrow('ops are being recorded already');
    });
    await expect(
      t.profile(() => {
        throw new Error('stop');
      }),
    ).rejects.toThrow('stop');
    expect((await t.profile(step)).ops.length).toBeGreaterThan(0);
  });

  it('costs nothing when nothing is profiled: no observer stays behind', async () => {
    await t.profile(step);
    expect(observers).toHaveLength(0);
  });
});
