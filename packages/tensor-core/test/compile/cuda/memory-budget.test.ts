import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { CompileOptions, Device, Tensor } from '../../../src/index.ts';
import { budgetBytes, formatBytes } from '../../../src/compile/memory-budget.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { NotedOrder, tell } from '../ordered-effects-op.ts';
import { openEmulatedDevice, openPlanningDevice } from '../../../src/testing.ts';

const kibibyte = 1024;
const [rows, width, depth] = [64, 32, 8];

/** A deep network, and a step that trains it: its gradients are the results, or it takes a step of gradient descent itself. */
function networkOn(
  device: Device,
  dtype: t.DType,
  learns = false,
  between: (x: Tensor) => Tensor = (x) => x,
  height = rows,
) {
  const draw = (shape: number[], seed: number) =>
    t.cast(t.mul(t.randn(shape, { generator: new t.Generator(seed), device }), 0.2), dtype);
  const weights = Array.from({ length: depth }, (_, i) => draw([width, width], i).requiresGrad_());
  const x = draw([height, width], 99);
  const step = (input: Tensor) => {
    for (const weight of weights) weight.grad = null;
    const forward = () =>
      weights.reduce((y, weight) => t.add(y, between(t.tanh(t.exp(t.mul(t.matmul(y, weight), 0.1))))), input);
    const loss = t.mean(forward());
    loss.backward();
    if (learns) {
      const update = (weight: Tensor) =>
        t.scope(() => t.copyInPlace(weight, t.sub(weight, t.mul(weight.grad!, 0.5))));
      t.noGrad(() => weights.forEach(update));
      for (const weight of weights) {
        weight.grad!.dispose();
        weight.grad = null;
      }
    }
    return loss.detach();
  };
  const outcome = (loss: Tensor) => [
    loss.item(),
    ...weights.map((weight) => weight.toFlatArray()),
    ...weights.map((weight) => weight.grad?.toFlatArray() ?? null),
  ];
  return { x, step, weights, outcome };
}

function runs(device: Device, dtype: t.DType, options: CompileOptions, learns = false) {
  return t.scope(() => {
    const { x, step, outcome } = networkOn(device, dtype, learns);
    const compiled = t.compile(step, { branches: 'never', ...options });
    const outcomes = Array.from({ length: 4 }, () => outcome(compiled(x)));
    expect(compiled.cache.hits).toBeGreaterThan(0);
    const explained = compiled.explain().at(-1)!;
    compiled.dispose();
    return { outcomes, ...explained };
  });
}

const given = (dtype: t.DType) => t.byteSize(dtype) * (depth * width * width + rows * width);

describe.skipIf(!hostCompilerVersion())('a memoryBudget on the emulated GPU', () => {
  const device = openEmulatedDevice();
  const settings = (['float32', 'float64', 'bfloat16', 'float16'] as const).flatMap((dtype) => [
    [dtype, false] as const,
    [dtype, true] as const,
  ]);

  it.each(settings)('gives the same bits in less memory: %s, learning %s', (dtype, learns) => {
    const free = runs(device, dtype, {}, learns);
    expect(free.callsMadeAgain).toBe(0);
    for (const share of [0.85, 0.6]) {
      const arena = Math.floor(free.arenaBytes * share);
      const within = runs(device, dtype, { memoryBudget: given(dtype) + arena + 8 * kibibyte }, learns);
      expect(within.outcomes).toEqual(free.outcomes);
      expect(within.callsMadeAgain).toBeGreaterThan(0);
      expect(within.arenaBytes).toBeLessThan(free.arenaBytes);
    }
  });

  it('makes nothing again where there is room', () => {
    const free = runs(device, 'float32', {});
    const within = runs(device, 'float32', { memoryBudget: '1GiB' });
    expect(within.table).toEqual(free.table);
    expect(within.callsMadeAgain).toBe(0);
  });

  it('lets a checkpoint keep what there is room for', () => {
    const between = (x: Tensor) => t.checkpoint((y: Tensor) => t.softmax(y, 1), x);
    const [free, tight, wide] = [undefined, 0, 2 ** 22].map((room) =>
      t.scope(() => {
        // More than is kept anyway.
        const height = 1024;
        const { x, step, outcome } = networkOn(device, 'float32', false, between, height);
        const held = 4 * (depth * width * width + height * width);
        const options = (bytes: number) => ({ branches: 'never' as const, memoryBudget: bytes });
        const without = t.compile(step, { branches: 'never' });
        for (let i = 0; i < 3; i++) outcome(without(x));
        const { arenaBytes } = without.explain().at(-1)!;
        const compiled = room === undefined ? without : t.compile(step, options(held + arenaBytes + room));
        const outcomes = Array.from({ length: 4 }, () => outcome(compiled(x)));
        const { table } = compiled.explain().at(-1)!;
        without.dispose();
        compiled.dispose();
        return { outcomes, calls: table.length };
      }),
    );
    expect(tight!.outcomes).toEqual(free!.outcomes);
    expect(wide!.outcomes).toEqual(free!.outcomes);
    expect(wide!.calls).toBeLessThan(tight!.calls);
    expect(wide!.calls).toBeLessThanOrEqual(free!.calls - depth);
  });

  it('keeps random numbers, which only one call draws', () => {
    t.scope(() => {
      const weights = Array.from({ length: 6 }, (_, i) =>
        t.full([width, width], 0.1 + i / 50, { device, requiresGrad: true }),
      );
      const x = t.ones([rows, width], { device });
      let most = Infinity;
      const outcomes = [1, 0.85, 0.7].map((share) => {
        const memoryBudget = Number.isFinite(most) ? Math.floor(most * share) : undefined;
        const generator = new t.Generator(3);
        const step = t.compile(
          () => {
            for (const weight of weights) weight.grad = null;
            const y = weights.reduce(
              (z, weight) => t.dropout(t.exp(t.mul(t.matmul(z, weight), 0.1)), { p: 0.4, generator }),
              x,
            );
            t.sum(y).backward();
          },
          memoryBudget === undefined ? {} : { memoryBudget },
        );
        const gradients = Array.from({ length: 4 }, () => {
          step();
          return weights.map(({ grad }) => grad!.toFlatArray());
        });
        const { callsMadeAgain, arenaBytes } = step.explain().at(-1)!;
        expect(callsMadeAgain > 0).toBe(memoryBudget !== undefined);
        if (memoryBudget === undefined) most = arenaBytes + 4 * (6 * width * width + rows * width);
        step.dispose();
        for (const weight of weights) weight.grad = null;
        return gradients;
      });
      expect(outcomes[1]).toEqual(outcomes[0]);
      expect(outcomes[2]).toEqual(outcomes[0]);
    });
  });
});

describe('a memoryBudget', () => {
  const planning = openPlanningDevice();

  const order = new NotedOrder();
  const schedules = [
    ['one chain', 'never', (x: Tensor) => x],
    ['all branches', 'always', (x: Tensor) => x],
    ['ordered effects', 'auto', (x: Tensor) => tell(x, order)],
  ] as const;

  it.each(schedules)('is kept, or refused with the least that can be: %s', (_, branches, between) => {
    t.scope(() => {
      const { x, step } = networkOn(planning, 'float32', false, between);
      const least = (memoryBudget: number): number => {
        const compiled = t.compile(step, { memoryBudget, branches });
        try {
          for (let i = 0; i < 3; i++) compiled(x);
          return 0;
        } catch (error) {
          expect(error).toBeInstanceOf(t.CompileError);
          const { message } = error as Error;
          expect(message).toMatch(
            /^compile: step cannot run in a memoryBudget of 0\.\d+ MiB: with all made again that can be, it takes/,
          );
          expect(message).toContain(
            'of which parameters, their state and arguments are 0.040 MiB. It needs most at ',
          );
          return Number(/it takes (0\.\d+) MiB/.exec(message)![1]) * 2 ** 20;
        } finally {
          compiled.dispose();
        }
      };
      const bytes = least(50 * kibibyte);
      expect(bytes).toBeGreaterThan(60 * kibibyte);
      expect(least(Math.floor(bytes - 2 * kibibyte))).toBeCloseTo(bytes, -1);
      // What the error names is enough.
      expect(least(Math.floor(bytes))).toBe(0);
    });
  });

  it('is not for the CPU', () => {
    const step = t.compile((x: Tensor) => t.exp(x), { memoryBudget: '1GiB' });
    expect(() => step(t.ones([2]))).toThrow(/memoryBudget is kept on GPUs.* on the CPU leave it out/);
  });

  it.each([
    0,
    -1,
    NaN,
    Infinity,
    '',
    '12',
    '1 GiBs',
    '-1GiB',
    'GiB',
    '1e3GiB',
    'toString',
    null,
    {},
    1n,
    '0GiB',
  ])('cannot be %s', (memoryBudget) => {
    expect(() => t.compile(() => {}, { memoryBudget: memoryBudget as never })).toThrow(
      /compile: memoryBudget must be a positive number of bytes, or a text as 500MiB and 100GiB/,
    );
  });

  it('is bytes or a text', () => {
    const bytes = (budget: number | string) => budgetBytes('compile', budget);
    expect(['1GiB', '1.5 MiB', '2GB', '3kB', 4096.7].map(bytes)).toEqual([
      2 ** 30,
      1.5 * 2 ** 20,
      2e9,
      3000,
      4096,
    ]);
  });

  it.each([2 ** 19, 2 ** 20 + 1, 99.94 * 2 ** 20, 2 ** 30, 100.01 * 2 ** 30])(
    'of the bytes that an error names has room for them: %s',
    (bytes) => {
      const room = budgetBytes('compile', formatBytes(bytes));
      expect(room).toBeGreaterThanOrEqual(bytes);
      expect(room).toBeLessThan(bytes * 1.1);
    },
  );
});
