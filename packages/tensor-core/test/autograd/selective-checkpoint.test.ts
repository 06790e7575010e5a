import { afterEach, describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { RepeatableCall, Tensor } from '../../src/index.ts';

const cpu = t.device('cpu');
const random = (shape: number[], seed: number, dtype: t.DType = 'float32') =>
  t.cast(t.randn(shape, { generator: new t.Generator(seed) }), dtype);
const weights = [random([4, 4], 1), random([4, 4], 2)] as const;
const stops: (() => void)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

/** The names of ops that run until the test ends. */
function opsRun(): string[] {
  const ops: string[] = [];
  stops.push(t.observeOps({ before: ({ name }) => void ops.push(name) }));
  return ops;
}

type Layer = (x: Tensor, w: readonly Tensor[]) => Tensor;
const network: Layer = (x, [a, b]) => t.tanh(t.matmul(t.exp(t.matmul(x, a!)), b!));

/** The gradients of x and both weights, and the ops of the backward pass. */
function gradientsOf(run: (x: Tensor, w: readonly Tensor[]) => Tensor, dtype: t.DType = 'float32') {
  return t.scope(() => {
    const x = random([3, 4], 3, dtype).requiresGrad_();
    const leaves = weights.map((w) => t.cast(w, dtype).detach().requiresGrad_());
    const y = run(x, leaves);
    const g = random([3, 4], 4, dtype);
    const ops = opsRun();
    y.backward(g);
    stops.pop()!();
    return { ops, gradients: [x, ...leaves].map(({ grad }) => grad!.toFlatArray()) };
  });
}

const keeping =
  (keeps: (call: RepeatableCall) => boolean, fn: Layer = network) =>
  (x: Tensor, w: readonly Tensor[]) =>
    t.selectiveCheckpoint(keeps, (y) => fn(y, w), x);
const isProduct = ({ op }: RepeatableCall) => op === 'matmul';

describe('selectiveCheckpoint', () => {
  it.each(['float64', 'float32', 'float16', 'bfloat16'] as const)(
    'gives the bits of the plain call, whatever it keeps: %s',
    (dtype) => {
      const plain = gradientsOf(network, dtype);
      const choices: ((call: RepeatableCall) => boolean)[] = [
        () => false,
        () => true,
        isProduct,
        ({ op }) => op === 'exp',
        ({ op }) => op === 'tanh',
      ];
      for (const keeps of choices) {
        expect(gradientsOf(keeping(keeps), dtype).gradients).toEqual(plain.gradients);
      }
    },
  );

  it('holds linearCrossEntropy, which makes gradients only where they are needed', () => {
    const targets = t.tensor([0, 3, 1], { dtype: 'int32' });
    const loss: Layer = (x, [a, b]) =>
      t.mul(
        t.expand(t.linearCrossEntropy(t.exp(t.matmul(x, a!)), b!, targets, { chunkRows: 2 }), [3, 4]),
        random([3, 4], 5),
      );
    const plain = gradientsOf(loss);
    for (const keeps of [() => false, ({ op }: RepeatableCall) => op === 'exp'])
      expect(gradientsOf(keeping(keeps, loss)).gradients).toEqual(plain.gradients);
  });

  it('does not run again what it keeps', () => {
    const count = (ops: readonly string[], name: string) => ops.filter((op) => op === name).length;
    const [plain, whole, products, all] = [
      gradientsOf(network),
      gradientsOf(keeping(() => false)),
      gradientsOf(keeping(isProduct)),
      gradientsOf(keeping(() => true)),
    ].map(({ ops }) => ops);
    expect(count(whole!, 'matmul')).toBe(count(plain!, 'matmul') + 2);
    expect(count(products!, 'matmul')).toBe(count(plain!, 'matmul'));
    expect(count(products!, 'exp')).toBe(count(plain!, 'exp') + 1);
    expect(all).toEqual(plain);
  });

  it('asks about each call that makes something, with its range and bytes', () => {
    t.scope(() => {
      const asked: RepeatableCall[] = [];
      const x = random([3, 4], 3).requiresGrad_();
      t.selectiveCheckpoint(
        (call) => asked.push(call) === 0,
        (y) => {
          const [first] = t.split(
            t.range('wide', () => t.cast(t.mul(y, 2), 'float64')),
            2,
            1,
          );
          t.range('add', () => t.noGrad(() => t.addInPlace(t.ones([3, 2], { dtype: 'float64' }), first!)));
          return t.range('outer', () => t.range('inner', () => t.exp(first!)));
        },
        x,
      );
      expect(asked.filter(({ op }) => !op.includes('fill'))).toEqual([
        { op: 'mul', range: ['wide'], bytes: 48 },
        { op: 'cast', range: ['wide'], bytes: 96 },
        { op: 'exp', range: ['outer', 'inner'], bytes: 48 },
      ]);
    });
  });

  it('saves its inputs and what it keeps, all results of a call', () => {
    t.scope(() => {
      const x = random([3, 4], 3).requiresGrad_();
      const parts = [random([4], 5), random([4], 6)] as const;
      const fn = (y: Tensor) => t.scope(() => t.exp(t.layerNorm(t.mul(y, 3), ...parts)));
      const y = t.selectiveCheckpoint(({ op }) => op === 'layerNorm', fn, x);
      const saved = t.savedForBackward(y).map(({ byteLength }) => byteLength);
      // The output, and the mean and the reciprocal deviation of each row.
      expect(saved.toSorted((a, b) => a - b)).toEqual([12, 12, 48]);
      y.backward(t.ones([3, 4]));
      const kept = x.grad!.toFlatArray();
      x.grad = null;
      fn(x).backward(t.ones([3, 4]));
      expect(kept).toEqual(x.grad!.toFlatArray());
    });
  });

  it('works under autocast, with float32 weights', () => {
    const low = (run: (x: Tensor, w: readonly Tensor[]) => Tensor) =>
      gradientsOf((x, w) => t.autocast('bfloat16', () => run(x, w)));
    const plain = low(network);
    const kept = low(keeping(isProduct));
    expect(kept.gradients).toEqual(plain.gradients);
    expect(kept.ops.filter((op) => op === 'matmul')).toEqual(plain.ops.filter((op) => op === 'matmul'));
  });

  it('nests, in and around others', () => {
    const plain = gradientsOf((x, w) => network(network(x, w), w));
    const inner = keeping(({ op }) => op === 'exp');
    const nested = [
      keeping(isProduct, (x, w) => inner(inner(x, w), w)),
      keeping(
        () => true,
        (x, w) => inner(inner(x, w), w),
      ),
      (x: Tensor, w: readonly Tensor[]) => t.checkpoint((y) => inner(inner(y, w), w), x),
      keeping(isProduct, (x, w) =>
        t.checkpoint(
          (y) => network(y, w),
          t.checkpoint((y) => network(y, w), x),
        ),
      ),
    ];
    for (const run of nested) expect(gradientsOf(run).gradients).toEqual(plain.gradients);
  });

  it.each([true, false])('repeats random numbers, whether their op is kept (%s) or not', (isKept) => {
    const noisy: Layer = (x, [a]) => {
      const y = t.dropout(t.matmul(x, a!), { p: 0.5 });
      return t.add(t.exp(y), t.uniform([3, 4]));
    };
    const before = t.defaultGenerator.stateDict();
    stops.push(() => t.defaultGenerator.loadStateDict(before));
    const run = (layer: Layer) => {
      t.defaultGenerator.manualSeed(5);
      const { gradients } = gradientsOf((x, w) => t.add(layer(x, w), t.mul(layer(x, w), 2)));
      return [gradients.slice(0, 2), t.defaultGenerator.stateDict()];
    };
    const layer: Layer = (x, w) => t.add(noisy(x, w), t.mul(t.sum(w[1]!), 0));
    const kept = keeping(({ op }) => (op === 'dropout' || op === 'uniform') === isKept, layer);
    expect(run((x, w) => kept(x, w))).toEqual(run(layer));
  });

  it('gives the same again with retainGraph', () => {
    t.scope(() => {
      const x = random([3, 4], 3).requiresGrad_();
      const y = keeping(isProduct)(x, weights);
      y.backward(t.ones([3, 4]), { retainGraph: true });
      const once = x.grad!.toFlatArray();
      x.grad = null;
      y.backward(t.ones([3, 4]));
      expect(x.grad!.toFlatArray()).toEqual(once);
    });
  });

  it('refuses to keep what is written in place later', () => {
    t.scope(() => {
      const written: Layer = (x, [a]) => {
        const y = t.matmul(x, a!);
        t.noGrad(() => t.fillInPlace(t.select(y, 0, 1), 3));
        return t.exp(y);
      };
      const x = random([3, 4], 3).requiresGrad_();
      expect(() => keeping(isProduct, written)(x, weights)).toThrow(t.AutogradError);
      expect(() => keeping(isProduct, written)(x, weights)).toThrow(
        /a result of matmul that is kept .* written in place/,
      );
      // One that was written before is another's.
      expect(() => keeping(({ op }) => op === 'exp', written)(x, weights)).not.toThrow();
    });
  });

  it('names the call where the second run goes another way', () => {
    t.scope(() => {
      const x = random([3, 4], 3).requiresGrad_();
      const steps = (names: ('exp' | 'tanh')[][]) => (y: Tensor) => {
        for (const name of names.shift()!) y = t[name](y);
        return y;
      };
      const run = (first: ('exp' | 'tanh')[], second: ('exp' | 'tanh')[]) => () =>
        t.selectiveCheckpoint(() => true, steps([first, second]), x).backward(t.ones([3, 4]));
      expect(run(['exp'], ['exp'])).not.toThrow();
      expect(run(['exp'], ['tanh'])).toThrow(
        'calls tanh in the backward pass, where in the forward pass it called exp',
      );
      expect(run(['exp'], ['exp', 'tanh'])).toThrow(
        'calls tanh in the backward pass, where in the forward pass it called no more',
      );
      // Nothing is left behind: the next call runs as it should.
      expect(t.exp(x).toFlatArray()).toEqual(t.exp(x.detach()).toFlatArray());
    });
  });

  it('frees what it keeps: with the backward pass, with the output, and where the function throws', () => {
    const before = cpu.memoryStatistics().liveStorages;
    const fail: Layer = (x, w) => {
      network(x, w);
      throw new Error('stop');
    };
    t.scope(() => {
      const x = random([3, 4], 3).requiresGrad_();
      const held = cpu.memoryStatistics().liveStorages;
      const y = keeping(() => true)(x, weights);
      expect(cpu.memoryStatistics().liveStorages).toBe(held + 4);
      y.dispose();
      expect(cpu.memoryStatistics().liveStorages).toBe(held);
      expect(() => keeping(() => true, fail)(x, weights)).toThrow('stop');
      expect(cpu.memoryStatistics().liveStorages).toBe(held);
      const loss = t.sum(keeping(() => true)(x, weights));
      loss.backward();
      loss.dispose();
      expect(cpu.memoryStatistics().liveStorages).toBe(held + 2);
    });
    expect(cpu.memoryStatistics().liveStorages).toBe(before);
  });

  it('compiles: what is kept is not made again', () => {
    t.scope(() => {
      const x = random([3, 4], 3).requiresGrad_();
      const calls = (run: (x: Tensor, w: readonly Tensor[]) => Tensor) => {
        const step = t.compile((g: Tensor) => {
          x.grad = null;
          // Twice, so that the first block's results are no longer there when it is repeated.
          run(run(x, weights), weights).backward(g);
        });
        for (let i = 0; i < 4; i++) step(random([3, 4], 4));
        expect(step.cache.hits).toBeGreaterThan(1);
        const names = step
          .explain()
          .at(-1)!
          .table.map(({ op }) => op);
        const gradient = x.grad!.toFlatArray();
        step.dispose();
        return { products: names.filter((name) => name === 'matmul').length, gradient };
      };
      const [plain, whole, kept] = [network, keeping(() => false), keeping(isProduct)].map(calls);
      expect(whole!.gradient).toEqual(plain!.gradient);
      expect(kept!.gradient).toEqual(plain!.gradient);
      expect(whole!.products).toBeGreaterThan(plain!.products);
      expect(kept!.products).toBe(plain!.products);
    });
  });
});
