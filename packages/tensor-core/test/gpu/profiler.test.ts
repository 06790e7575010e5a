import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';

const device = () => t.device('cuda');
const size = 1024;

/** Products, softmax and a gradient, under ranges. */
function step(x: t.Tensor, weight: t.Tensor): void {
  t.scope(() => {
    const loss = t.range('forward', () => {
      const scores = t.range('attention.scores', () => t.matmul(x, weight));
      return t.sum(t.range('attention.softmax', () => t.softmax(scores, -1)));
    });
    t.range('backward', () => loss.backward());
  });
  weight.grad?.dispose();
  weight.grad = null;
}

const operands = () =>
  [
    t.randn([size, size], { device: device() }),
    t.randn([size, size], { device: device(), requiresGrad: true }),
  ] as const;

describe('profile on a GPU', () => {
  it('gives every kernel its op and its ranges', async () => {
    const [x, weight] = operands();
    step(x, weight);
    const profile = await t.profile(() => step(x, weight));
    expect(profile.kernels.length).toBeGreaterThanOrEqual(profile.ops.length);
    expect(profile.kernels.filter(({ op }) => op === null)).toEqual([]);
    expect(profile.ops.filter((_, op) => !profile.kernels.some((kernel) => kernel.op === op))).toEqual([]);
    expect(profile.droppedRecords).toBe(0);

    const softmax = profile.kernels.find(({ op }) => profile.ops[op!]!.name === 'softmax')!;
    expect(softmax.name).toContain('softmax');
    expect(t.rangePath(profile, profile.ops[softmax.op!]!.range)).toEqual(['forward', 'attention.softmax']);
    const products = profile.kernels.filter(({ op }) => profile.ops[op!]!.isMatrixProduct);
    const paths = products.map(({ op }) => t.rangePath(profile, profile.ops[op!]!.range).join('/'));
    expect(new Set(paths)).toEqual(new Set(['forward/attention.scores', 'backward/attention.scores']));
  });

  it('gives the kernels of a graph with branches their ops, in an order that branches may change', async () => {
    const x = t.randn([512, 512], { device: device() });
    const table = t.randn([4096, 4096], { device: device() });
    // Sums of much memory beside a chain of products.
    const step = t.compile(
      (y: t.Tensor) => {
        const sums = [t.sum(t.exp(table), { dims: [0] }), t.max(table, { dims: [1] })];
        for (let i = 0; i < 12; i++) y = i % 4 === 3 ? t.softmax(y, -1) : t.matmul(y, x);
        return [...sums, y];
      },
      { branches: 'always' },
    );
    const run = () => t.noGrad(() => step(x).forEach((result) => result.dispose()));
    for (let i = 0; i < 3; i++) run();
    const profile = await t.profile(run);
    const explained = step.explain()[0]!;
    expect(explained.callsBeside).toBeGreaterThan(0);
    // The copy of the argument is no op's.
    const named = profile.kernels.flatMap(({ op, name }) =>
      op === null ? [] : [{ op: profile.ops[op]!, name }],
    );
    expect(named).toHaveLength(profile.kernels.length - 1);
    for (const { op, name } of named) {
      if (op.name === 'softmax') expect(name).toContain('softmax');
      expect(/gemm|nvjet|cutlass|matmul|splitK/i.test(name), `${name} of ${op.name}`).toBe(
        op.isMatrixProduct,
      );
    }
    const streams = (beside: boolean) =>
      new Set(
        profile.kernels.flatMap(({ stream }) => (stream.endsWith(', branch') === beside ? [stream] : [])),
      );
    expect([streams(true).size > 0, streams(false).size > 0]).toEqual([true, true]);
    step.dispose();
  });

  it('times kernels as events do, within the wall time', async () => {
    const x = t.randn([4096, 4096], { device: device() });
    t.scope(() => t.matmul(x, x));
    let eventsMs = 0;
    const { kernels, wallUs } = await t.profile(() => {
      const start = device().recordEvent();
      for (let i = 0; i < 20; i++) t.scope(() => t.matmul(x, x));
      eventsMs = device().recordEvent().elapsedMs(start);
    });
    // A kernel may begin while the previous one ends: time in which both run counts once.
    let busyUs = 0;
    let endUs = -Infinity;
    for (const { startUs, durationUs } of kernels) {
      busyUs += Math.max(0, startUs + durationUs - Math.max(startUs, endUs));
      endUs = Math.max(endUs, startUs + durationUs);
    }
    expect(busyUs).toBeLessThanOrEqual(eventsMs * 1000 * 1.02);
    expect(busyUs).toBeGreaterThan(eventsMs * 1000 * 0.9);
    expect(kernels[0]!.startUs).toBeGreaterThan(-50);
    expect(endUs).toBeLessThan(wallUs + 50);
  });

  it('records copies to and from the host, apart from ops', async () => {
    const [x] = operands();
    const { kernels } = await t.profile(() => void x.toFlatArray());
    expect(kernels.some(({ name, op }) => name === '[CUDA memcpy DtoH]' && op === null)).toBe(true);
    const bytes = kernels.reduce((sum, { byteLength }) => sum + (byteLength ?? 0), 0);
    expect(bytes).toBe(4 * size * size);
  });

  it('drops nothing and stays ordered over any number of ops', async () => {
    const count = 60_000;
    const x = t.ones([64], { device: device() });
    const profile = await t.profile(() => {
      for (let i = 0; i < count; i++) t.scope(() => t.neg(x));
    });
    expect(profile.droppedRecords).toBe(0);
    expect(profile.kernels.map(({ op }) => op)).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  describe('of a compiled function', () => {
    const compiledStep = () => {
      const [x, weight] = operands();
      const call = t.compile(function step(input: t.Tensor) {
        weight.grad?.dispose();
        weight.grad = null;
        const loss = t.range('forward', () =>
          t.range('layer', () => t.sum(t.softmax(t.mul(t.exp(t.mul(t.matmul(input, weight), 1e-3)), 2), -1))),
        );
        t.range('backward', () => loss.backward());
        return loss.detach();
      });
      while (call.cache.hits === 0) call(x).dispose();
      return { call, x };
    };

    it('gives every kernel of its graph its op and its ranges, fused ops by name', async () => {
      const { call, x } = compiledStep();
      const [program] = call.explain().slice(-1);
      const { kernels, ops, ranges, droppedRecords } = await t.profile(() => {
        for (let i = 0; i < 3; i++) call(x).dispose();
      });
      expect(droppedRecords).toBe(0);
      const inGraph = kernels.filter(({ op }) => op !== null);
      expect(inGraph).toHaveLength(3 * program!.nodes!);
      // Besides it the argument and the result are copied.
      expect(new Set(kernels.filter(({ op }) => op === null).map(({ kind }) => kind))).toEqual(
        new Set(['memcpy']),
      );
      const expected = [0, 1, 2].flatMap((replay) =>
        program!.table.flatMap(({ nodes }, i) =>
          Array<number>(nodes!).fill(replay * program!.table.length + i),
        ),
      );
      expect(inGraph.map(({ op }) => op)).toEqual(expected);
      for (const { name, op } of inGraph) {
        if (name.startsWith('pointwise_')) expect(name).toContain(ops[op!]!.name);
        if (name.includes('softmax')) expect(ops[op!]!.name).toContain('softmax');
      }
      expect(ops.some(({ members }) => members.length > 1)).toBe(true);
      const paths = new Set(ops.map(({ range }) => t.rangePath({ ranges }, range).join('/')));
      for (const path of ['forward/layer', 'backward/layer']) expect(paths).toContain(path);
    });

    it('holds its arena, which recordings name', () => {
      const { call, x } = compiledStep();
      const record = t.recordMemory(() => call(x).dispose(), { device: device() });
      const arena = record.allocations.filter(({ op }) => op === 'arena of step');
      expect(arena.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(4 * size * size);
      // The result is in it.
      expect(record.allocations.filter(({ startUs }) => startUs !== null)).toEqual([]);
    });
  });
});
