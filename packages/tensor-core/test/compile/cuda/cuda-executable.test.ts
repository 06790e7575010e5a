import { describe, expect, it } from 'vitest';
import {
  DeviceError,
  type CompileExplanation,
  type Tensor,
  add,
  addInPlace,
  apply,
  applyLive,
  backward,
  compile,
  defineOp,
  OutOfMemoryError,
  empty,
  exp,
  keep,
  matmul,
  mul,
  noGrad,
  ones,
  softmax,
  sum,
  tensor,
} from '../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { halve, halveKernel, scaled, throughScratch } from '../lowered-ops.ts';

describe.skipIf(hostCompilerVersion() === null)('compile on an emulated GPU', () => {
  const device = openEmulatedDevice();
  const on = (values: number[] | number[][], requiresGrad = false) =>
    tensor(values, { device, requiresGrad });

  it('refuses to pass on an argument of another device', () => {
    const [x, leaf] = [on([1, 2]), tensor([1, 2]).requiresGrad_()];
    const gives = compile((y: Tensor, other: Tensor) => [exp(y), other]);
    const assigns = compile((y: Tensor, other: Tensor) => {
      leaf.grad = other;
      return exp(y);
    });
    for (const call of [gives, assigns])
      expect(() => call(x, tensor([3, 4]))).toThrow(/an argument \[2\] on cpu is handed on .* run on cuda:0/);
    expect(gives(x, on([3, 4]))[1]!.toFlatArray()).toEqual([3, 4]);
    expect(() => compile((y: Tensor, other: Tensor) => mul(y, other))(x, tensor([3, 4]))).toThrow(
      DeviceError,
    );
  });

  it('replays kernels over its own memory', () => {
    let runs = 0;
    const f = compile((x: Tensor, y: Tensor) => {
      runs++;
      return [softmax(mul(add(x, y), 3), 0), sum(mul(x, x))] as const;
    });
    const seen: (readonly [Tensor, Tensor])[] = [];
    for (let i = 0; i < 4; i++) seen.push(f(on([1, 2 + i, 3]), on([0.5, -i, 0])));
    expect(runs).toBe(1);
    expect(f.explain()).toMatchObject([
      {
        device: 'cuda:0',
        calls: 5,
        launches: 1,
        fused: new Map([['fused_add_mul', 1]]),
        bytesInRegisters: 12,
      },
    ]);
    const [{ nodes, nodesBefore, table }] = f.explain() as [CompileExplanation];
    expect(table.map(({ op, members }) => [op, members])).toEqual([
      ['fused_add_mul', ['add', 'mul']],
      ['softmax', []],
      ['mul', []],
      ['sum', []],
    ]);
    expect(table.reduce((total, row) => total + row.nodes!, 0)).toBe(nodes);
    expect(table[0]).toMatchObject({
      ...{ range: [], launch: 0 },
      inputs: [{ source: 'argument', dtype: 'float32', shape: [3] }, { source: 'argument' }],
      outputs: [{ source: 'made' }],
    });
    // Poison fills what is freed in an emulated graph; on a GPU these are one kernel against two.
    expect(nodesBefore).toBe(nodes! + 2 - Math.min(2, table[0]!.nodes!));
    seen.forEach(([first, second], i) => {
      const [x, y] = [tensor([1, 2 + i, 3]), tensor([0.5, -i, 0])];
      softmax(mul(add(x, y), 3), 0)
        .toFlatArray()
        .forEach((value, j) => expect(first.toFlatArray()[j]).toBeCloseTo(value, 6));
      expect(second.item()).toBeCloseTo(sum(mul(x, x)).item(), 5);
    });
  });

  it('trains as eager code does, bit by bit', () => {
    const weights = [0, 1].map(() => on([[1, 2], [3, 4]], true)); // prettier-ignore
    const steps = weights.map((weight) => (x: Tensor) => {
      weight.grad?.dispose();
      weight.grad = null;
      const product = matmul(x, weight);
      const loss = sum(mul(product, product));
      backward(loss);
      noGrad(() => addInPlace(weight, mul(weight.grad!, -0.01)));
      return loss.detach();
    });
    const compiled = compile(steps[1]!);
    const kept: number[][] = [];
    const grads: Tensor[] = [];
    for (let i = 0; i < 5; i++) {
      const x = on([[1, i / 4], [-1, 2]]); // prettier-ignore
      expect(compiled(x).item()).toBe(steps[0]!(x).item());
      expect(weights[1]!.toFlatArray()).toEqual(weights[0]!.toFlatArray());
      expect(weights[1]!.grad!.toFlatArray()).toEqual(weights[0]!.grad!.toFlatArray());
      grads.push(weights[1]!.grad!.detach());
      kept.push(grads.at(-1)!.toFlatArray());
    }
    expect(compiled.cache).toMatchObject({ hits: 3, misses: 2 });
    // Handles to gradients of earlier runs keep their elements.
    expect(grads.map((grad) => grad.toFlatArray())).toEqual(kept);
  });

  it('may put other tensors where a gradient will be, but not over one that is held', () => {
    const size = 300;
    const filled = (value: number, requiresGrad = false) =>
      on(new Array<number>(size).fill(value), requiresGrad);
    const weight = filled(0.5, true);
    const f = compile((x: Tensor) => {
      weight.grad?.dispose();
      weight.grad = null;
      // Tensors of the gradient's size come and go before it exists.
      const total = sum(softmax(mul(add(x, 1), x), 0)).detach();
      backward(sum(mul(mul(weight, weight), mul(total, add(sum(x), 1)))));
      return total;
    });
    const held: Tensor[] = [];
    for (let i = 0; i < 6; i++) {
      expect(f(filled(i)).item()).toBeCloseTo(1, 5);
      expect(weight.grad!.toFlatArray()[size - 1]).toBeCloseTo(size * i + 1, 1);
      if (i === 3 || i === 4) held.push(weight.grad!.detach());
    }
    expect(held.map((gradient) => Math.round(gradient.toFlatArray()[7]!))).toEqual([901, 1201]);
    f.dispose();
    expect(weight.grad!.toFlatArray()[0]).toBeCloseTo(size * 5 + 1, 1);
  });

  it('that replaces the gradient it reads is captured once', () => {
    let captured = 0;
    const gpu = openEmulatedDevice(2 ** 24, (activities) => {
      if (activities === 0) captured++;
    });
    const weight = tensor([1, 2, 3], { device: gpu, requiresGrad: true });
    const halveGradient = compile(() => {
      weight.grad = keep(noGrad(() => mul(weight.grad!, 0.5)));
    });
    weight.grad = tensor([16, 32, 64], { device: gpu });
    const seen: number[] = [];
    const gradients: unknown[] = [];
    for (let run = 0; run < 5; run++) {
      halveGradient();
      gradients.push(weight.grad.toArray());
      seen.push(captured);
    }
    expect(gradients).toEqual([1, 2, 4, 8, 16].map((by) => [8 / by, 16 / by, 32 / by]));
    expect(seen.slice(2)).toEqual([seen[1], seen[1], seen[1]]);
    expect(seen[1]).toBeGreaterThan(0);
  });

  it('asks for live attributes before each run', () => {
    let factor = 1;
    const f = compile((x: Tensor) => {
      const [once] = applyLive(scaled, [x], () => ({ factor: factor++ }));
      return applyLive(scaled, [apply(scaled, [once!], { factor: 10 })[0]!], () => ({
        factor: factor++,
      }))[0]!;
    });
    const x = on([1, 2]);
    expect([0, 1, 2].map(() => f(x).toFlatArray())).toEqual([
      [20, 40],
      [120, 240],
      [300, 600],
    ]);
  });

  it('finds captured tensors where they have moved while live attributes are computed', () => {
    const doubled = compile((x: Tensor) => mul(x, 2));
    for (let i = 0; i < 3; i++) doubled(on([i, i]));
    const five = doubled(on([5, 5]));
    let next = () => {};
    const f = compile((x: Tensor) => {
      const [once] = applyLive(scaled, [x], () => {
        next();
        return { factor: 1 };
      });
      return add(once!, five);
    });
    const x = on([1, 2]);
    for (let i = 0; i < 3; i++) expect(f(x).toFlatArray()).toEqual([11, 12]);
    // Its result takes the place of the previous one.
    next = () => doubled(on([100, 100])).dispose();
    for (let i = 0; i < 2; i++) expect(f(x).toFlatArray()).toEqual([11, 12]);
    f.dispose();
    doubled.dispose();
  });

  it('counts no run that finds no memory', () => {
    const mebibyte = 2 ** 20;
    const full = openEmulatedDevice(64 * mebibyte);
    const x = ones([4 * mebibyte], { device: full });
    let runs = 0;
    const f = compile(() => applyLive(scaled, [x], () => ({ factor: ++runs }))[0]!);
    const fill = (bytes: number) => empty([bytes / 4], { device: full, dtype: 'float32' });
    f().dispose();
    // No room for the arena, and then none for the result that is held.
    for (const occupied of [40 * mebibyte, 24 * mebibyte]) {
      full.emptyCache();
      const rest = fill(occupied);
      const before = runs;
      expect(() => f()).toThrow(OutOfMemoryError);
      expect(runs).toBe(before);
      rest.dispose();
      const result = f();
      expect([runs, result.toFlatArray().at(-1)]).toEqual([before + 1, before + 1]);
      if (occupied === 24 * mebibyte) result.dispose();
    }
    f.dispose();
  });

  it('refuses live attributes that change what an op launches, and names its line', () => {
    let times = 1;
    const repeated = defineOp<{ readonly times: number }>({
      name: 'repeated',
      autocast: 'none',
      infer: ([x]) => [x!],
      mutates: [0],
      cpu: halve.cpu as never,
      cuda: {
        kind: 'custom',
        launch(context, [x], _, options) {
          for (let i = 0; i < options.times; i++)
            context.kernel(halveKernel).launch([1, 1, 1], 32, 0, [x!.address, 0, x!.size]);
        },
      },
    });
    const x = on([64, 32]);
    const f = compile(() => void noGrad(() => applyLive(repeated, [x], () => ({ times }))));
    for (let i = 0; i < 3; i++) f();
    expect(x.toFlatArray()).toEqual([8, 4]);
    times = 2;
    expect(() => f()).toThrow(
      /repeated launches other kernels.*next\(\)\. At (?:packages.tensor-core.)?test.compile.cuda.cuda-executable\.test\.ts:\d+:\d+/,
    );
  });

  it('captured once more for its tuned products, gives the same in the same memory', () => {
    const weights = [0, 1].map(() => on([[1, 2], [3, 4]], true)); // prettier-ignore
    const programs = weights.map((weight, i) =>
      compile(
        (x: Tensor) => {
          weight.grad?.dispose();
          weight.grad = null;
          const loss = sum(mul(matmul(x, weight), 3));
          backward(loss);
          noGrad(() => addInPlace(weight, mul(weight.grad!, -0.01)));
          return applyLive(scaled, [loss.detach()], () => ({ factor: 2 }))[0]!;
        },
        { autotune: i === 1 },
      ),
    );
    for (let i = 0; i < 4; i++) {
      const x = on([[1, i / 4], [-1, 2]]); // prettier-ignore
      const [plain, tuned] = programs.map((program) => program(x).item());
      expect(tuned).toBe(plain);
      expect(weights[1]!.toFlatArray()).toEqual(weights[0]!.toFlatArray());
    }
    const [plain, tuned] = programs.map((program) => program.explain()[0]!);
    expect(tuned).toEqual(plain);
    for (const program of programs) program.dispose();
  });

  it.each(Array.from({ length: 12 }, (_, i) => i + 1))(
    'has the scratch of the stream that it was captured on to itself, in order %i',
    (seed) => {
      const gpu = openEmulatedDevice(2 ** 28, undefined, undefined, seed);
      const filled = (value: number) => tensor(new Array<number>(300).fill(value), { device: gpu });
      const f = compile((x: Tensor) => throughScratch(x));
      const [five, one] = [filled(5), filled(1)];
      for (let i = 0; i < 3; i++) f(one);
      const other = gpu.createStream();
      other.waitFor(gpu.recordEvent());
      const seen = [0, 1, 2, 3].flatMap(() => [gpu.onStream(other, () => f(five)), throughScratch(one)]);
      gpu.synchronize();
      expect(seen.map((y) => y.toFlatArray()[0])).toEqual([5, 1, 5, 1, 5, 1, 5, 1]);
    },
  );

  it('writes into its arguments', () => {
    const f = compile((x: Tensor) => addInPlace(x, mul(x, 2)));
    const x = on([1, 2]);
    for (let i = 0; i < 3; i++) f(x);
    expect(x.toFlatArray()).toEqual([27, 54]);
  });
});
