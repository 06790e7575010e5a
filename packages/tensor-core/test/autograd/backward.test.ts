import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { openPlanningDevice } from '../../src/testing.ts';

const leaf = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64', requiresGrad: true });

describe('backward', () => {
  it('adds up over every path to a leaf, and over calls', () => {
    t.scope(() => {
      const x = leaf([1, 2]);
      const y = t.mul(x, x);
      t.sum(t.add(t.mul(y, x), x)).backward();
      expect(x.grad!.toFlatArray()).toEqual([3 * 1 + 1, 3 * 4 + 1]);
      t.sum(x).backward();
      expect(x.grad!.toFlatArray()).toEqual([5, 14]);
    });
  });

  it('sums the gradient of a broadcast operand and keeps its dtype', () => {
    t.scope(() => {
      const x = t.ones([3, 2], { requiresGrad: true });
      const bias = t.tensor([1, 2], { dtype: 'float16', requiresGrad: true });
      t.sum(t.add(x, bias)).backward();
      expect(bias.grad!.dtype).toBe('float16');
      expect(bias.grad!.toFlatArray()).toEqual([3, 3]);
    });
  });

  it('takes the gradient of a tensor of many elements', () => {
    t.scope(() => {
      const x = leaf([1, 2, 3]);
      t.mul(x, 2).backward(t.tensor([1, 10, 100], { dtype: 'float64' }));
      expect(x.grad!.toFlatArray()).toEqual([2, 20, 200]);
      expect(() => t.mul(x, 2).backward()).toThrow(/needs a gradient of its shape/);
    });
  });

  it('gives a leaf a gradient of its own dtype, whatever that of the given one', () => {
    t.scope(() => {
      const x = t.tensor([1, 2], { requiresGrad: true });
      x.backward(t.tensor([3, 4], { dtype: 'float64' }));
      x.backward(t.tensor([1, 1], { dtype: 'int32' }));
      expect(x.grad!.dtype).toBe('float32');
      expect(x.grad!.toArray()).toEqual([4, 5]);
    });
  });

  it('gives nothing to a leaf that no longer requires a gradient', () => {
    t.scope(() => {
      const x = t.tensor([1, 2], { requiresGrad: true });
      const y = t.sum(t.mul(x, x));
      x.requiresGrad_(false);
      y.backward();
      expect(x.grad).toBeNull();
    });
  });

  it('refuses what is not a tensor, an option or a function', () => {
    t.scope(() => {
      const y = t.sum(t.tensor([1], { requiresGrad: true }));
      const options = { retainGraph: true } as unknown;
      expect(() => t.backward(3 as unknown as t.Tensor)).toThrow(t.DTypeError);
      expect(() => y.backward(options as t.Tensor)).toThrow(t.DTypeError);
      expect(() => y.backward(undefined, { retain_graph: true } as t.BackwardOptions)).toThrow(
        /did you mean "retainGraph"/,
      );
      for (const run of [t.scope, t.noGrad, t.enableGrad, t.withoutAutocast]) {
        expect(() => run(3 as unknown as () => void)).toThrow(t.RooflineError);
      }
    });
  });

  it('refuses a gradient on another device, and leaves the graph as it was', () => {
    t.scope(() => {
      const x = leaf([1, 2]);
      const y = t.mul(x, x);
      const elsewhere = t.ones([2], { device: openPlanningDevice(), dtype: 'float64' });
      expect(() => y.backward(elsewhere)).toThrow(
        new t.DeviceError(
          'backward: the tensor [2] is on cpu and its gradient on cuda:0; move that with .to(device).',
        ),
      );
      y.backward(t.ones([2], { dtype: 'float64' }));
      expect(x.grad!.toArray()).toEqual([2, 4]);
    });
  });

  it('runs twice only when the graph is retained', () => {
    t.scope(() => {
      const x = leaf(3);
      const y = t.mul(x, x);
      y.backward(undefined, { retainGraph: true });
      y.backward();
      expect(x.grad!.item()).toBe(12);
      expect(() => y.backward()).toThrow(/retainGraph: true/);
    });
  });

  it('refuses a tensor without history, and one whose history was overwritten', () => {
    t.scope(() => {
      expect(() => t.ones([1]).backward()).toThrow(/does not depend on anything/);
      const x = leaf([2]);
      const y = t.mul(x, x);
      t.noGrad(() => t.fillInPlace(x, 5));
      expect(() => y.backward()).toThrow(/written in place/);
    });
  });

  it('records nothing under noGrad, and nothing after detach', () => {
    t.scope(() => {
      const x = leaf([2]);
      expect(t.noGrad(() => t.mul(x, x)).requiresGrad).toBe(false);
      t.mul(x, t.mul(x, x).detach()).backward();
      expect(x.grad!.toFlatArray()).toEqual([4]);
    });
  });

  it('calls hooks once the gradient of a parameter is complete', () => {
    t.scope(() => {
      const x = leaf([2]);
      const seen: number[][] = [];
      const remove = x.onGradientAccumulated((parameter) => seen.push(parameter.grad!.toFlatArray()));
      t.add(t.mul(x, x), x).backward();
      expect(seen).toEqual([[5]]);
      remove();
      x.grad = null;
      t.mul(x, x).backward();
      expect(seen).toHaveLength(1);
    });
  });

  it('differentiates views', () => {
    t.scope(() => {
      const x = t.tensor(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        { dtype: 'float64' },
      );
      t.checkGradients((a) => t.mul(t.transpose(a), t.transpose(a)), [x]);
      t.checkGradients((a) => t.exp(t.slice(a, 1, 0, 3, 2)), [x]);
      t.checkGradients((a) => t.exp(t.reshape(t.transpose(a), [2, 3])), [x]);
      t.checkGradients((a) => t.sin(t.expand(t.unsqueeze(a, 0), [4, 2, 3])), [x]);
      t.checkGradients((a) => t.sin(t.select(a, 0, 1)), [x]);
      t.checkGradients((a, b) => t.sin(t.concat([a, b, a], 1)), [x, x]);
      t.checkGradients((a, b) => t.sin(t.stack([a, b], 1)), [x, x]);
    });
  });

  it('differentiates matmul in every layout', () => {
    t.scope(() => {
      const a = t.tensor(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        { dtype: 'float64' },
      );
      const b = t.tensor(
        [
          [0.5, -1],
          [2, 0.25],
          [-3, 1],
        ],
        { dtype: 'float64' },
      );
      t.checkGradients((x, y) => t.sin(t.matmul(x, y)), [a, b]);
      t.checkGradients((x, y) => t.sin(t.matmul(t.transpose(y), t.transpose(x), { scale: 0.3 })), [a, b]);
      t.checkGradients((x, w) => t.sin(t.linear(x, t.transpose(w))), [a, b]);
      t.checkGradients((x, y) => t.matmul(t.expand(x, [2, 2, 3]), t.expand(y, [2, 3, 2])), [a, b]);
      t.checkGradients((x, y) => t.matmul(t.expand(x, [2, 2, 3]), y), [a, b]);
    });
  });

  it('differentiates reductions', () => {
    t.scope(() => {
      const x = t.tensor(
        [
          [1, 2, 3],
          [4, 5, 6.5],
        ],
        { dtype: 'float64' },
      );
      for (const options of [{}, { dims: 0 }, { dims: [1], keepDims: true }]) {
        t.checkGradients((a) => t.sin(t.sum(a, options)), [x]);
        t.checkGradients((a) => t.sin(t.mean(a, options)), [x]);
        t.checkGradients((a) => t.sin(t.max(a, options)), [x]);
      }
    });
  });

  it('is checked by checkGradients, which finds a wrong rule', () => {
    const wrong = t.defineOp({
      name: 'wrong',
      autocast: 'none',
      infer: ([x]) => [x!],
      gradient: ({ gradients }) => [t.mul(gradients[0]!, 3)],
      cuda: { kind: 'pointwise', expressions: () => ['2 * a'] },
      cpu: { kind: 'onnx', build: (graph, [a]) => [graph.node('Add', [a!, a!])] },
    });
    t.scope(() => {
      const x = t.tensor([1, 2], { dtype: 'float64' });
      expect(() => t.checkGradients((a) => t.applyOne(wrong, [a], undefined), [x])).toThrow(
        /element 0: backward gives 3, finite differences 2/,
      );
    });
  });
});

describe('memory', () => {
  const live = () => t.device('cpu').memoryStatistics().liveStorages;

  it('frees what a scope made, but not what it returned', () => {
    const before = live();
    const kept = t.scope(() => {
      const x = t.ones([4]);
      return { y: [t.mul(t.add(x, 1), 2)] };
    });
    expect(live()).toBe(before + 1);
    kept.y[0]!.dispose();
    expect(live()).toBe(before);
  });

  it('holds exactly what the gradients need, until backward', () => {
    t.scope(() => {
      const x = t.ones([4], { requiresGrad: true });
      const before = live();
      // exp saves its output, mul saves both; the sum and the product themselves are not kept.
      const loss = t.scope(() => t.sum(t.mul(t.exp(x), x)));
      expect(live()).toBe(before + 2);
      loss.backward();
      expect(live()).toBe(before + 2);
      loss.dispose();
      expect(live()).toBe(before + 1);
    });
  });

  it('frees the tape of a result that is dropped without backward', () => {
    t.scope(() => {
      const x = t.ones([4], { requiresGrad: true });
      const before = live();
      const loss = t.scope(() => t.sum(t.exp(t.exp(t.exp(x)))));
      expect(live()).toBeGreaterThan(before + 1);
      loss.dispose();
      expect(live()).toBe(before);
    });
  });

  it('has as many storages after a hundred steps as after one', () => {
    t.scope(() => {
      const w = t.ones([8, 8], { requiresGrad: true });
      const step = () =>
        t.scope(() => {
          t.sum(t.sigmoid(t.linear(t.ones([2, 8]), w))).backward();
          w.grad!.dispose();
          w.grad = null;
        });
      step();
      const afterOne = live();
      for (let i = 1; i < 100; i++) step();
      expect(live()).toBe(afterOne);
    });
  });
});
