import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { openPlanningDevice } from '../../src/testing.ts';

const leaf = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64', requiresGrad: true });

const cube = t.defineFunction<t.Tensor>({
  name: 'cube',
  forward(context, x) {
    context.save(x!);
    return t.mul(x!, t.mul(x!, x!));
  },
  backward: ({ saved: [x] }, g) => t.mul(g!, t.mul(t.mul(x!, x!), 3)),
});

describe('defineFunction', () => {
  it('has the gradient that its backward gives, in a chain of ops', () => {
    t.checkGradients((x) => t.exp(cube(t.mul(x!, 2))), [t.tensor([0.1, -0.3], { dtype: 'float64' })]);
  });

  it('keeps what it saved until backward, and nothing after it', () => {
    const { liveStorages } = t.device('cpu').memoryStatistics();
    t.scope(() => {
      const x = leaf([2]);
      const y = t.scope(() => cube(t.mul(x, 1)));
      y.backward();
      expect(x.grad!.toTypedArray()).toEqual(new Float64Array([12]));
      expect(() => y.backward()).toThrow(/freed by an earlier backward/);
    });
    expect(t.device('cpu').memoryStatistics().liveStorages).toBe(liveStorages);
  });

  it('takes several inputs and outputs, with null for what none needs', () => {
    const seen: (readonly boolean[])[] = [];
    const swap = t.defineFunction({
      name: 'swap',
      forward: (_, a, b) => [b!, a!],
      backward({ needs }, gb, ga) {
        seen.push(needs);
        return [ga!, gb!];
      },
    });
    t.scope(() => {
      const [a, b] = [leaf([1, 2]), t.tensor([3, 4], { dtype: 'float64' })];
      const [first, second] = swap(a, b) as t.Tensor[];
      expect(first).not.toBe(b);
      t.sum(t.add(t.mul(first!, 10), t.mul(second!, 5))).backward();
      expect(a.grad!.toTypedArray()).toEqual(new Float64Array([5, 5]));
      expect(b.grad).toBeNull();
      expect(seen).toEqual([[true, false]]);
    });
  });

  it.each([[[0]], [[1]], [[0, 2]]])('has null for outputs without a gradient, where %j have one', (used) => {
    const seen: (boolean | null)[] = [];
    const triple = t.defineFunction<readonly t.Tensor[]>({
      name: 'triple',
      forward: (_, x) => [t.mul(x!, 2), t.mul(x!, 3), t.mul(x!, 4)],
      backward(_, ...gradients) {
        seen.push(...gradients.map((gradient) => gradient && true));
        return gradients.find((gradient) => gradient !== null)!;
      },
    });
    t.scope(() => {
      const outputs = triple(leaf([1, 2]));
      t.sum(t.stack(used.map((output) => outputs[output]!))).backward();
    });
    expect(seen).toEqual([0, 1, 2].map((output) => used.includes(output) || null));
  });

  it('refuses a wrong number of gradients, and saves in backward', () => {
    t.scope(() => {
      const few = t.defineFunction({
        name: 'few',
        forward: (_, a, b) => t.add(a!, b!),
        backward: (_, g) => [g!],
      });
      expect(() => t.sum(few(leaf([1]), leaf([2]))).backward()).toThrow(
        'few: backward gave 1 gradients for 2',
      );
      const late = t.defineFunction({
        name: 'late',
        forward: (_, a) => t.mul(a!, 1),
        backward(context, g) {
          context.save(g!);
          return g;
        },
      });
      expect(() => t.sum(late(leaf([1]))).backward()).toThrow('late: save() is for forward');
    });
  });

  it.each([
    [
      [3, 2],
      [2, 3],
    ],
    [[6], [2, 3]],
    [[], [3]],
    [
      [1, 3],
      [2, 3],
    ],
    [[2], [3]],
  ])('refuses a gradient %j of an input %j, and sums one that it broadcasts to', (given, shape) => {
    t.scope(() => {
      const shaped = (gradient: number[]) =>
        t.defineFunction<t.Tensor>({
          name: 'shaped',
          forward: (_, x) => t.copy(x!),
          backward: () => t.ones(gradient),
        });
      const x = t.ones(shape, { requiresGrad: true });
      expect(() => t.sum(shaped(given)(x)).backward()).toThrow(
        `shaped: the gradient of an input [${shape.join(', ')}] cannot be [${given.join(', ')}]`,
      );
      t.sum(shaped([4, ...shape])(x)).backward();
      expect(x.grad!.toArray()).toEqual(t.full(shape, 4).toArray());
    });
  });

  it('refuses a gradient on another device than its leaf', () => {
    const elsewhere = openPlanningDevice();
    t.scope(() => {
      const moved = t.defineFunction<t.Tensor>({
        name: 'moved',
        forward: (_, x) => t.copy(x!),
        backward: () => t.ones([2], { device: elsewhere }),
      });
      const x = t.ones([2], { requiresGrad: true });
      expect(() => t.sum(moved(x)).backward()).toThrow('the gradient of [2] on cpu came on cuda:0');
      expect(x.grad).toBeNull();
    });
    expect(elsewhere.memoryStatistics().liveStorages).toBe(0);
  });

  it('leaves tensors of others alone that forward or backward give', () => {
    t.scope(() => {
      const [constant, x] = [t.tensor([1, 1], { dtype: 'float64' }), leaf([3, 4])];
      const fixed = t.defineFunction<t.Tensor>({
        name: 'fixed',
        forward: () => constant,
        backward: () => constant,
      });
      const y = fixed(x);
      t.sum(y).backward();
      t.sum(fixed(x)).backward();
      t.sum(fixed(t.mul(x, 2))).backward();
      y.dispose();
      expect(x.grad!.toArray()).toEqual([4, 4]);
      expect(constant.requiresGrad).toBe(false);
      expect(constant.toArray()).toEqual([1, 1]);
    });
  });

  it('gives each of the outputs that are one tensor its gradient, and integers none', () => {
    t.scope(() => {
      const x = leaf([3, 4]);
      const twice = t.defineFunction<t.Tensor[]>({
        name: 'twice',
        forward(_, x) {
          const y = t.mul(x!, 1);
          return [y, y, t.argmax(x!)];
        },
        backward: (_, a, b) => t.add(t.mul(a!, 10), b!),
      });
      const [a, b, index] = twice(x);
      expect(index!.requiresGrad).toBe(false);
      t.sum(t.add(a!, t.mul(b!, 2))).backward();
      expect(x.grad!.toArray()).toEqual([12, 12]);
    });
  });

  it('refuses what is not a tensor, as an input, an output, saved or a gradient', () => {
    t.scope(() => {
      const broken = (forward: unknown, backward: unknown, saved: unknown = leaf([1])) =>
        t.defineFunction<t.Tensor>({
          name: 'broken',
          forward(context, x) {
            context.save(saved as t.Tensor);
            return (forward === 'x' ? t.copy(x!) : forward) as t.Tensor;
          },
          backward: () => backward as t.Tensor,
        });
      expect(() => broken('x', null)(3 as unknown as t.Tensor)).toThrow(t.DTypeError);
      expect(() => broken(undefined, null)(leaf([1]))).toThrow(t.DTypeError);
      expect(() => broken('x', null, 3)(leaf([1]))).toThrow(t.DTypeError);
      expect(() => broken('x', undefined)(leaf([1])).backward()).toThrow(t.DTypeError);
      expect(() => broken('x', [3])(leaf([1])).backward()).toThrow(t.DTypeError);
    });
  });

  it('notices that what it saved was written', () => {
    t.scope(() => {
      const x = leaf([2]);
      const inner = t.mul(x, 1);
      const y = cube(inner);
      t.noGrad(() => t.fillInPlace(inner, 3));
      expect(() => y.backward()).toThrow(/written in place/);
    });
  });
});

describe('checkpoint', () => {
  it('has the gradients of the plain call, of inputs and parameters, and saves the inputs alone', () => {
    t.scope(() => {
      const w = leaf([
        [0.3, -0.2],
        [0.5, 0.1],
      ]);
      const x = leaf([[1, 2]]);
      const fn = (input: t.Tensor) => t.tanh(t.matmul(t.tanh(t.matmul(input, w)), w));
      t.sum(fn(x)).backward();
      const plain = [w.grad!.toTypedArray(), x.grad!.toTypedArray()];
      [w.grad, x.grad] = [null, null];
      const y = t.checkpoint(fn, x);
      expect(t.savedForBackward(y)).toHaveLength(0);
      t.sum(y).backward();
      expect([w.grad!.toTypedArray(), x.grad!.toTypedArray()]).toEqual(plain);
    });
  });

  it('runs again with the same autocast and the same random numbers', () => {
    t.scope(() => {
      const w = t.ones([4, 4], { requiresGrad: true });
      const dtypes: t.DType[] = [];
      const noises: number[] = [];
      const fn = (input: t.Tensor) => {
        const product = t.matmul(input, w);
        dtypes.push(product.dtype);
        const noise = t.uniform([1]);
        noises.push(noise.item());
        return t.mul(product, noise);
      };
      const y = t.autocast('bfloat16', () => t.checkpoint(fn, t.ones([1, 4], { requiresGrad: true })));
      t.uniform([8]);
      t.sum(y).backward();
      expect(dtypes).toEqual(['bfloat16', 'bfloat16']);
      expect(noises[1]).toBe(noises[0]);
      expect(w.grad!.dtype).toBe('float32');
    });
  });

  it('frees everything, also outside of scopes', () => {
    const { liveStorages } = t.device('cpu').memoryStatistics();
    const x = leaf([[1, 2]]);
    const y = t.checkpoint((input) => t.exp(input), x);
    const loss = t.sum(y);
    loss.backward();
    for (const tensor of [loss, y, x]) tensor.dispose();
    expect(t.device('cpu').memoryStatistics().liveStorages).toBe(liveStorages);
  });
});

describe('onBackwardFinished', () => {
  it('is called once, after the outermost pass, without recording', () => {
    t.scope(() => {
      const x = leaf([1, 2]);
      const calls: unknown[] = [];
      const remove = t.onBackwardFinished(() => calls.push([x.grad !== null, t.isGradEnabled()]));
      t.sum(t.checkpoint((input) => t.exp(input), x)).backward();
      expect(calls).toEqual([[true, false]]);
      remove();
      t.sum(x).backward();
      expect(calls).toHaveLength(1);
    });
  });

  it('is not called where the pass fails: its other hook is, once', () => {
    t.scope(() => {
      const x = leaf([1]);
      const calls = { finished: 0, failed: 0 };
      const remove = t.onBackwardFinished(
        () => calls.finished++,
        () => calls.failed++,
      );
      const heal = x.onGradientAccumulated(() => {
        throw new Error('stop');
      });
      const loss = () => t.sum(t.checkpoint((input) => t.mul(input, x), t.ones([1], { requiresGrad: true })));
      expect(() => loss().backward()).toThrow('stop');
      expect(calls).toEqual({ finished: 0, failed: 1 });
      heal();
      loss().backward();
      expect(calls).toEqual({ finished: 1, failed: 1 });
      remove();
      loss().backward();
      expect(calls).toEqual({ finished: 1, failed: 1 });
    });
  });

  it('reports the failure of a hook too', () => {
    t.scope(() => {
      let failures = 0;
      const remove = t.onBackwardFinished(
        () => {
          throw new Error('stop');
        },
        () => failures++,
      );
      expect(() => t.sum(leaf([1])).backward()).toThrow('stop');
      remove();
      expect(failures).toBe(1);
    });
  });
});

describe('enableGrad', () => {
  it('records inside noGrad, and only there', () => {
    t.scope(() => {
      const x = leaf([1]);
      t.noGrad(() => {
        expect(t.enableGrad(() => t.mul(x, x)).requiresGrad).toBe(true);
        expect(t.mul(x, x).requiresGrad).toBe(false);
      });
    });
  });
});
