import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { defaultGenerator } from '../../../src/tensor/random/generator.ts';

const leaf = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64', requiresGrad: true });
const plain = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64' });
const values = (x: t.Tensor) => [...(x.toTypedArray() as Float64Array)];
const live = () => t.device('cpu').memoryStatistics().liveStorages;

/** e^x and -x, with a gradient that reports what it can read. */
const seen: unknown[] = [];
const expAndNegative = t.defineOp({
  name: 'expAndNegative',
  autocast: 'none',
  infer: ([x]) => [x!, { shape: x!.shape, dtype: 'float32' }],
  saves: () => ({ inputs: [0], outputs: [0, 1] }),
  gradient({ gradients: [first, second], input, output, inputSpecs, outputSpecs }) {
    seen.push(inputSpecs, outputSpecs, values(input(0)), values(output(0)), output(1).toFlatArray());
    const ofFirst = first ? t.mul(first, output(0)) : null;
    const ofSecond = second ? t.mul(t.cast(second, 'float64'), -1) : null;
    return [ofFirst && ofSecond ? t.add(ofFirst, ofSecond) : (ofFirst ?? ofSecond)];
  },
  cuda: { kind: 'pointwise', expressions: () => ['exp(a)', '-a'] },
  cpu: {
    kind: 'onnx',
    build: (graph, [a]) => [graph.node('Exp', [a!]), graph.cast(graph.node('Neg', [a!]), 'float32')],
  },
});

describe('an entry of the tape', () => {
  it('gives the gradient rule its inputs and outputs, each by its own number', () => {
    t.scope(() => {
      const x = leaf([0, 1]);
      const [exponential, negative] = t.apply(expAndNegative, [x], undefined) as [t.Tensor, t.Tensor];
      const total = t.add(t.sum(t.mul(exponential, 10)), t.sum(t.mul(negative, 3)));
      total.backward();
      const spec = { shape: [2], dtype: 'float64' };
      expect(seen).toEqual([
        [spec],
        [spec, { shape: [2], dtype: 'float32' }],
        [0, 1],
        [1, expect.closeTo(Math.E, 12)],
        [-0, -1],
      ]);
      expect(values(x.grad!)).toEqual([10 - 3, expect.closeTo(10 * Math.E - 3, 12)]);
    });
  });

  it('gives the gradient of one output alone', () => {
    t.scope(() => {
      const x = leaf([0, 1]);
      t.sum(t.apply(expAndNegative, [x], undefined)[1]!).backward();
      expect(values(x.grad!)).toEqual([-1, -1]);
    });
  });

  it('refuses a gradient that reads what was not saved', () => {
    const careless = (read: (context: t.GradientContext<unknown>) => t.Tensor) =>
      t.defineOp<unknown>({
        name: 'careless',
        autocast: 'none',
        infer: ([x]) => [x!],
        saves: () => ({ inputs: [1] }),
        gradient: (context) => [read(context), null],
        cuda: { kind: 'pointwise', expressions: () => ['a'] },
        cpu: { kind: 'onnx', build: (graph, [a, b]) => [graph.node('Add', [a!, b!])] },
      });
    t.scope(() => {
      const run = (read: (context: t.GradientContext<unknown>) => t.Tensor) =>
        t.sum(t.applyOne(careless(read), [leaf([1]), plain([2])], undefined)).backward();
      expect(() => run(({ input }) => input(0))).toThrow('careless: its gradient reads input 0, which');
      expect(() => run(({ output }) => output(0))).toThrow('careless: its gradient reads output 0, which');
      run(({ input }) => input(1));
    });
  });

  it('survives for a result that lives while another is dropped', () => {
    t.scope(() => {
      const x = leaf([1, 2]);
      const y = t.exp(t.mul(x, 0));
      const [kept, dropped] = [t.mul(y, 3), t.mul(y, 5)];
      y.dispose();
      dropped.dispose();
      t.sum(kept).backward();
      expect(values(x.grad!)).toEqual([0, 0]);
    });
  });

  it.each([2, 16, 17, 40])('knows which of %d inputs want a gradient, in consecutive calls', (count) => {
    for (const wanted of [0, count - 1, Math.floor(count / 2)]) {
      t.scope(() => {
        const inputs = Array.from({ length: count }, (_, i) => (i === wanted ? leaf([1]) : plain([1])));
        const weights = plain(inputs.map((_, i) => i + 1));
        t.sum(t.mul(t.concat(inputs, 0), weights)).backward();
        expect(inputs.map(({ grad }) => grad?.item() ?? null)).toEqual(
          inputs.map((_, i) => (i === wanted ? i + 1 : null)),
        );
      });
    }
  });

  it('saves what the inputs that want a gradient need, and no more', () => {
    t.scope(() => {
      const [a, b] = [t.exp(leaf([1, 2])), plain([3, 4, 5, 6])];
      const pair = t.slice(b, 0, 0, 2);
      const saved = (y: t.Tensor) =>
        t.savedForBackward(y).flatMap(({ op, byteLength }) => (op === 'mul' ? [byteLength] : []));
      expect(saved(t.mul(a, pair))).toEqual([32]);
      expect(saved(t.mul(pair, a))).toEqual([32]);
      expect(saved(t.mul(t.exp(pair), pair))).toEqual([]);
    });
  });
});

describe('a backward pass', () => {
  it('frees its graph when it fails, unless that is retained', () => {
    for (const retainGraph of [false, true]) {
      t.scope(() => {
        const [x, w] = [leaf([1]), leaf([2])];
        const inner = t.exp(t.mul(w, w));
        const y = t.exp(t.mul(inner, x));
        const remove = x.onGradientAccumulated(() => {
          throw new Error('stop');
        });
        expect(() => y.backward(undefined, { retainGraph })).toThrow('stop');
        remove();
        // After the hook, which the pass had not reached yet, as before it.
        for (const tensor of [y, inner]) {
          const again = () => tensor.backward(undefined, { retainGraph });
          if (retainGraph) expect(again).not.toThrow();
          else expect(again).toThrow('freed by an earlier backward pass');
        }
      });
    }
  });

  it('leaves out a leaf that was disposed', () => {
    const before = live();
    t.scope(() => {
      const [x, w] = [leaf([1, 2]), leaf([3, 4])];
      const y = t.sum(t.mul(x, w));
      x.dispose();
      y.backward();
      expect(values(w.grad!)).toEqual([1, 2]);
      expect(x.grad).toBeNull();
    });
    expect(live()).toBe(before);
  });

  it('keeps no more of a shared gradient alive than the leaf has elements', () => {
    t.scope(() => {
      const [a, b] = [leaf([1, 2]), leaf([3, 4, 5])];
      t.sum(t.mul(t.concat([a, b], 0), plain([1, 2, 3, 4, 5]))).backward();
      expect([values(a.grad!), values(b.grad!)]).toEqual([
        [1, 2],
        [3, 4, 5],
      ]);
      expect([a, b].map(({ grad }) => grad!.storage.byteLength)).toEqual([16, 24]);
    });
  });

  it('adds up many contributions in the memory of a few, however many they are', () => {
    const cpu = t.device('cpu');
    t.scope(() => {
      const x = t.ones([2 ** 16], { requiresGrad: true });
      let y = t.mul(x, 1);
      for (let i = 2; i <= 20; i++) y = t.add(y, t.mul(x, i));
      const loss = t.sum(y);
      const before = cpu.allocatedBytes;
      cpu.resetPeakMemory();
      loss.backward();
      expect(x.grad!.toFlatArray()[0]).toBe(210);
      // The sum, the incoming contribution, the memory that the CPU writes their sum to, and a little for scalars.
      expect(cpu.memoryStatistics().peakAllocatedBytes - before).toBeLessThan(3.5 * x.byteLength);
    });
  });

  it('sums over leading dimensions and those of length one alike', () => {
    t.scope(() => {
      const [x, one, y] = [leaf([[1], [2]]), leaf([[[1]]]), t.ones([4, 2, 3], { dtype: 'float64' })];
      t.sum(t.add(t.add(x, y), one)).backward();
      expect(x.grad!.shape).toEqual([2, 1]);
      expect(values(x.grad!)).toEqual([12, 12]);
      expect(one.grad!.shape).toEqual([1, 1, 1]);
      expect(values(one.grad!)).toEqual([24]);
      const row = leaf([[1, 2, 3]]);
      t.sum(t.mul(row, plain([5, 6, 7]))).backward();
      expect(row.grad!.shape).toEqual([1, 3]);
      expect(values(row.grad!)).toEqual([5, 6, 7]);
    });
  });
});

describe('a function of one’s own', () => {
  const needs: (readonly boolean[])[] = [];
  const first = t.defineFunction<t.Tensor>({
    name: 'first',
    forward(context, a) {
      needs.push(context.needs);
      expect(context.saved).toEqual([]);
      context.save(a!);
      return t.mul(a!, 1);
    },
    backward: () => [null, null],
  });

  it('is recorded where an input wants a gradient and recording is on, and only there', () => {
    t.scope(() => {
      const [x, y] = [leaf([1]), plain([2])];
      expect(first(x, y).requiresGrad).toBe(true);
      expect(t.noGrad(() => first(x, y)).requiresGrad).toBe(false);
      expect(first(y, y).requiresGrad).toBe(false);
      expect(needs).toEqual([
        [true, false],
        [false, false],
        [false, false],
      ]);
    });
  });

  it('may give null alone, and names itself where an input was disposed', () => {
    t.scope(() => {
      const stop = t.defineFunction<t.Tensor>({
        name: 'stop',
        forward: (_, a) => t.mul(a!, 2),
        backward: () => null,
      });
      const x = leaf([1]);
      t.sum(stop(x)).backward();
      expect(x.grad).toBeNull();
      x.dispose();
      expect(() => stop(x)).toThrow(/^stop:/);
    });
  });
});

describe('checkpoint', () => {
  it('of what does not depend on its input gives no gradient', () => {
    t.scope(() => {
      const x = leaf([1]);
      t.sum(t.checkpoint((input) => t.mul(input.detach(), 2), x)).backward();
      expect(x.grad).toBeNull();
    });
  });

  it('takes a tensor whose history others share as an input, and says so', () => {
    t.scope(() => {
      const [w, x] = [leaf([0.5]), leaf([2])];
      const loss = (scaled: (y: t.Tensor, scale: t.Tensor) => t.Tensor) => {
        const scale = t.exp(w);
        return t.sum(scaled(scaled(x, scale), scale));
      };
      const captured = loss((y, scale) => t.checkpoint((input) => t.mul(input, scale), y));
      expect(() => captured.backward()).toThrow(/exp .* of a checkpoint, .* among its inputs/);
      [w.grad, x.grad] = [null, null];
      loss((y, scale) => t.checkpoint(t.mul, y, scale)).backward();
      expect(w.grad!.item()).toBeCloseTo(4 * Math.E, 5);
      expect(x.grad!.item()).toBeCloseTo(Math.E, 5);
    });
  });

  it('leaves the default random generator where it was', () => {
    t.scope(() => {
      const x = t.ones([4], { requiresGrad: true });
      const y = t.sum(t.checkpoint((input) => t.mul(input, t.uniform([4])), x));
      t.uniform([100]);
      const { offset } = defaultGenerator;
      y.backward();
      expect(defaultGenerator.offset).toBe(offset);
    });
  });
});
