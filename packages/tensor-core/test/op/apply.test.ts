import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { checkOptions } from '@roofline/cuda/host';
import { costOf } from '../../src/op/cost.ts';
import { observers } from '../../src/op/observers.ts';
import { openEmulatedDevice } from '../../src/testing/emulated-device.ts';

const plain = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64' });
const values = (x: t.Tensor) => [...(x.toTypedArray() as Float64Array)];
const live = () => t.device('cpu').memoryStatistics().liveStorages;

/** The inputs themselves, one output each. */
const copies = t.defineOp({
  name: 'copies',
  autocast: 'none',
  infer: (inputs) => inputs.map(({ shape }, i) => ({ shape, dtype: i === 0 ? 'float64' : 'int64' })),
  gradient: ({ gradients: [g] }) => [g!, null],
  cuda: { kind: 'pointwise', expressions: () => ['a', 'b'] },
  cpu: { kind: 'onnx', build: (graph, [a, b]) => [graph.node('Identity', [a!]), graph.cast(b!, 'int64')] },
});

describe('apply', () => {
  it('refuses disposed inputs, in any position, and names the op', () => {
    t.scope(() => {
      const [x, gone] = [plain([1]), plain([2])];
      gone.dispose();
      expect(() => t.add(x, gone)).toThrow(t.DisposedError);
      expect(() => t.add(x, gone)).toThrow(/^add:/);
      expect(() => t.reshape(gone, [1, 1])).toThrow(t.DisposedError);
      expect(() => t.addInPlace(x, gone)).toThrow(t.DisposedError);
      expect(values(x)).toEqual([1]);
    });
  });

  it('refuses inputs of several devices, and none at all', () => {
    const other = openEmulatedDevice();
    t.scope(() => {
      const [x, y] = [t.ones([2]), t.empty([2], { device: other })];
      expect(() => t.add(x, y)).toThrow(t.DeviceError);
      expect(() => t.add(x, y)).toThrow(/inputs are on cpu and cuda:0/);
      expect(() => t.apply(copies, [], undefined)).toThrow(
        'copies: an op needs at least one input to know its device',
      );
    });
  });

  it('records what has a floating-point output, if an input wants a gradient', () => {
    t.scope(() => {
      const [x, whole] = [plain([1, 2]), plain([3, 4])];
      const run = (input: t.Tensor) => t.apply(copies, [input, whole], undefined);
      expect(run(x).map(({ requiresGrad }) => requiresGrad)).toEqual([false, false]);
      const leaf = plain([1, 2]).requiresGrad_();
      const [copy] = run(leaf) as [t.Tensor];
      expect(copy.requiresGrad).toBe(true);
      t.sum(copy).backward();
      expect(values(leaf.grad!)).toEqual([1, 1]);
      expect(t.noGrad(() => run(leaf)[0]!.requiresGrad)).toBe(false);
      expect(t.noGrad(() => t.reshape(leaf, [2, 1])).requiresGrad).toBe(false);
      expect(t.argmax(leaf).requiresGrad).toBe(false);
    });
  });

  it('frees the casts of autocast that nothing has saved', () => {
    t.scope(() => {
      const [a, b] = [t.ones([2, 2]), t.ones([2, 2])];
      const before = live();
      const product = t.autocast('bfloat16', () => t.matmul(a, b));
      expect(product.dtype).toBe('bfloat16');
      expect(live()).toBe(before + 1);
      expect([a.isDisposed, b.isDisposed]).toEqual([false, false]);
    });
  });
});

describe('in-place writes', () => {
  it('may read what is before or after the target, or the target by another handle', () => {
    t.scope(() => {
      const x = plain([1, 2, 3, 4]);
      const half = (start: number) => t.slice(x, 0, start, start + 2);
      t.addInPlace(half(2), half(0));
      expect(values(x)).toEqual([1, 2, 4, 6]);
      t.addInPlace(half(0), half(2));
      expect(values(x)).toEqual([5, 8, 4, 6]);
      t.addInPlace(half(0), half(0));
      expect(values(x)).toEqual([10, 16, 4, 6]);
      expect(() => t.addInPlace(half(1), half(0))).toThrow(t.ShapeError);
      expect(() => t.addInPlace(half(0), half(1))).toThrow(t.ShapeError);
    });
  });
});

describe('observers', () => {
  it('need only the methods that they care about', () => {
    const other = openEmulatedDevice();
    t.scope(() => {
      const stop = t.observeOps({});
      const x = t.tensor([1, 2]);
      expect(t.exp(x).to(other).toFlatArray()).toHaveLength(2);
      stop();
    });
  });

  it('leave only once, however often they are asked to', () => {
    const names: string[] = [];
    const [stopFirst, stopSecond] = [
      t.observeOps({}),
      t.observeOps({ before: ({ name }) => void names.push(name) }),
    ];
    stopFirst();
    stopFirst();
    t.scope(() => void t.exp(plain([1])));
    stopSecond();
    expect(names).toEqual(['exp']);
    expect(observers).toHaveLength(0);
  });
});

it('the cost of an op that declares none is every input read and every output written', () => {
  const inputs = [
    { shape: [2, 3], dtype: 'float64' as const },
    { shape: [], dtype: 'int32' as const },
  ];
  const outputs = [{ shape: [5], dtype: 'float16' as const }];
  expect(costOf(copies, inputs, outputs, undefined)).toEqual({ flops: 0, bytesMoved: 48 + 4 + 10 });
});

it('an option is taken for a known one up to half its letters away', () => {
  const message = (name: string) => {
    try {
      checkOptions('op', { [name]: 1 }, ['dims', 'learningRate']);
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  expect(message('dixx')).toContain('did you mean "dims"?');
  expect(message('dxxx')).not.toContain('did you mean');
  expect(message('learnXXXXate')).toContain('did you mean "learningRate"?');
});
