import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { CompileError, type Device, type Tensor, compile } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { scaled } from './lowered-ops.ts';

const values = (x: Tensor | null) => x && x.toFlatArray();

/** Calls `run` for each of a few calls: the first captures the graph, the others replay it. */
const calls = <T>(run: (call: number) => T): T[] => [0, 1, 2].map(run);

describe('on the CPU', () => keepsMemoryApart(() => t.device('cpu')));

describe.skipIf(hostCompilerVersion() === null)('on an emulated GPU', () => {
  const device = openEmulatedDevice();
  keepsMemoryApart(() => device);
});

function keepsMemoryApart(deviceOf: () => Device): void {
  const on = (numbers: number[] | number[][]) => t.tensor(numbers, { device: deviceOf() });

  it('a run keeps its own, whatever it calls or frees meanwhile', () => {
    let happen = () => {};
    const f = compile(
      (x: Tensor) => {
        const numbers = t.arange(0, x.size, 1, { device: deviceOf(), dtype: 'float32' });
        const [y] = t.applyLive(scaled, [x], () => (happen(), { factor: 2 }));
        return t.add(t.add(y!, x), numbers);
      },
      { cacheSize: 1 },
    );
    const run = (...numbers: number[]) => values(f(on(numbers)));
    const once = (act: () => void) => () => {
      happen = () => {};
      act();
    };
    let inner: unknown = null;
    const happenings = [
      () => void (inner = run(100, 100)),
      () => void (inner = run(7, 8, 9)),
      () => f.dispose(),
    ];
    for (const act of happenings) {
      expect(calls(() => run(1, 2))).toEqual(calls(() => [3, 7]));
      happen = once(act);
      expect(run(1, 2)).toEqual([3, 7]);
      run(1, 2);
      const stop = t.observeOps({ before: ({ name }) => name === 'scaled' && happen() });
      happen = once(act);
      expect(run(1, 2)).toEqual([3, 7]);
      stop();
      if (act !== happenings[2]) expect(inner).toEqual(act === happenings[0] ? [300, 301] : [21, 25, 29]);
    }
    happen = () => {};
  });

  it('results that are parts of an argument have its elements, and are copies', () => {
    const rows = on([[1, 2], [3, 4]]); // prettier-ignore
    const f = compile((x: Tensor) => [t.view(x, [2, 1]), t.slice(x, 0, 1, 2), t.mul(x, 2)]);
    const seen = calls(() => {
      const [whole, part] = f(t.select(rows, 0, 1));
      const found = [whole!, part!].map(values);
      t.fillInPlace(whole!, 9);
      return found;
    });
    expect(seen).toEqual(calls(() => [[3, 4], [4]]));
    expect(values(rows)).toEqual([1, 2, 3, 4]);
  });

  it('a gradient that is a part of an argument has its elements, and lives on', () => {
    const leaf = on([0, 0]).requiresGrad_();
    const f = compile((x: Tensor) => {
      leaf.grad = t.keep(t.slice(x, 0, 1, 3));
      return t.mul(x, 2);
    });
    const seen = calls((call) => {
      t.scope(() => void f(t.slice(on([7, 5, call, 1]), 0, 1, 4)));
      return values(leaf.grad);
    });
    expect(seen).toEqual(calls((call) => [call, 1]));
  });

  it('numbers of arange are fresh, however earlier results of it were written', () => {
    const f = compile((x: Tensor) => {
      const numbers = t.arange(0, 3, 1, { device: deviceOf(), dtype: 'float32' });
      return [numbers, t.add(x, numbers), t.arange(4, 6, 1, { device: deviceOf() })];
    });
    const seen = calls(() => {
      const results = f(on([1, 1, 1]));
      const found = results.map(values);
      for (const x of results) t.fillInPlace(x, 8);
      return found;
    });
    expect(seen).toEqual(calls(() => [[0, 1, 2], [1, 2, 3], [4, 5]])); // prettier-ignore
    const writes = compile((x: Tensor) =>
      t.addInPlace(t.arange(0, 3, 1, { device: deviceOf(), dtype: 'float32' }), x),
    );
    expect(() => writes(on([1, 1, 1]))).toThrow(/the numbers of arange.*are written to.*copy/);
  });

  it('an argument that shares memory with what is written elsewhere is refused before anything is written', () => {
    const weight = on([1, 2, 3, 4]);
    const leaf = on([1, 1]).requiresGrad_();
    const update = compile((x: Tensor) => {
      t.addInPlace(weight, t.onesLike(weight));
      return t.mul(x, 2);
    });
    const shift = compile((x: Tensor, y: Tensor) => {
      t.addInPlace(x, t.onesLike(x));
      return t.mul(y, 2);
    });
    const read = compile((x: Tensor) => {
      t.fillInPlace(x, 5);
      return t.mul(weight, 2);
    });
    const add = compile((x: Tensor) => {
      t.sum(t.mul(leaf, 3)).backward();
      return t.mul(x, 2);
    });
    t.sum(leaf).backward();
    const part = t.slice(weight, 0, 1, 3);
    const hostile = [
      () => update(weight),
      () => update(part),
      () => shift(part, t.alias(part)),
      () => shift(part, t.slice(weight, 0, 2, 4)),
      () => read(part),
      () => add(leaf.grad!),
    ];
    const attempt = () => {
      const before = [weight, leaf.grad].map(values);
      for (const call of hostile) {
        expect(call).toThrow(CompileError);
        expect(call).toThrow(/shares memory with another tensor.*Pass a copy\(\)/);
      }
      expect([weight, leaf.grad].map(values)).toEqual(before);
    };
    attempt();
    // With other memory they are compiled; then their replays are checked.
    for (let i = 0; i < 2; i++) {
      update(on([0]));
      update(on([0, 0]));
      update(on([0, 0, 0, 0]));
      shift(on([0, 0]), on([0, 0]));
      read(on([0, 0]));
      add(on([0, 0]));
    }
    attempt();
    // Neither is refused: columns of one matrix have no element in common.
    const columns = on([[1, 2], [3, 4]]); // prettier-ignore
    const seen = calls(() => values(shift(t.select(columns, 1, 0), t.select(columns, 1, 1))));
    expect(seen).toEqual(calls(() => [4, 8]));
    expect(values(columns)).toEqual([4, 2, 6, 4]);
  });

  it('an argument whose elements overlap or that is held is refused before anything is written', () => {
    const total = on([0, 0]);
    const f = compile((x: Tensor) => {
      t.addInPlace(x, t.onesLike(x));
      t.addInPlace(total, x);
    });
    const fine = on([0, 0]);
    const expanded = t.expand(on([1]), [2]);
    const attempt = () => {
      const before = values(total);
      expect(() => f(expanded)).toThrow(/\[2\] with strides \[0\].*contiguous\(\)/);
      const release = fine.storage.hold({ start: 0, end: 8 }, 'allReduce');
      expect(() => f(fine)).toThrow(/an argument \[2\] that allReduce works on; wait for it first/);
      release();
      expect(values(total)).toEqual(before);
    };
    attempt();
    calls(() => f(fine));
    attempt();
    expect(values(fine)).toEqual([3, 3]);
    expect(values(total)).toEqual([6, 6]);
  });

  it('a gradient that the function only drops stays with its holder, and may be an argument', () => {
    const leaf = on([1, 2]).requiresGrad_();
    const f = compile((x: Tensor, factor: Tensor) => {
      leaf.grad = null;
      t.sum(t.mul(t.mul(leaf, factor), x)).backward();
    });
    t.sum(leaf).backward();
    const held = calls((call) => {
      f(leaf.grad!, on([call + 1]));
      return leaf.grad!;
    });
    expect(held.map(values)).toEqual([[1, 1], [2, 2], [6, 6]]); // prettier-ignore
  });

  it('a gradient that the function frees may be an argument of its replays', () => {
    const leaf = on([1, 2]).requiresGrad_();
    const f = compile((x: Tensor) => {
      leaf.grad!.dispose();
      leaf.grad = null;
      t.sum(t.mul(t.add(leaf, t.exp(t.mul(x, 0))), t.add(x, 1))).backward();
    });
    t.sum(leaf).backward();
    expect(calls(() => (f(leaf.grad!), values(leaf.grad)))).toEqual([[2, 2], [3, 3], [4, 4]]); // prettier-ignore
  });
}

describe('a compiled function', () => {
  it('refuses hooks and takes gradient buffers that were set after it was compiled', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    const f = compile((x: Tensor) => {
      leaf.grad?.dispose();
      leaf.grad = null;
      t.sum(t.mul(leaf, x)).backward();
    });
    calls(() => f(t.ones([2])));
    const removeHook = leaf.onGradientAccumulated(() => {});
    expect(() => f(t.ones([2]))).toThrow(/a hook runs when a gradient has come/);
    removeHook();
    const removeLast = t.onBackwardFinished(() => {});
    expect(() => f(t.ones([2]))).toThrow(/a hook runs when a backward pass has ended/);
    removeLast();
    const buffer = t.zeros([2]);
    leaf.setGradientBuffer(buffer);
    expect(calls((call) => (f(t.full([2], call)), values(buffer)))).toEqual([[0, 0], [1, 1], [2, 2]]); // prettier-ignore
    leaf.setGradientBuffer(null);
    f(t.full([2], 7));
    expect([buffer, leaf.grad].map(values)).toEqual([[2, 2], [7, 7]]); // prettier-ignore
  });

  it('refuses a gradient that its scope frees', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    const f = compile((x: Tensor) => {
      leaf.grad = t.mul(x, 2);
    });
    expect(() => f(t.ones([2]))).toThrow(/the gradient of a leaf \[2\] was freed.*keep\(\) it/);
  });

  it('refuses what works on memory outside of ops, and files that are written', () => {
    const target = t.zeros([2]);
    const holds = compile((x: Tensor) => {
      target.storage.hold({ start: 0, end: 8 }, 'allReduce')();
      return t.mul(x, 2);
    });
    expect(() => holds(t.ones([2]))).toThrow(/allReduce works on memory beside the ops.*Call it outside/);
    const exports = compile((x: Tensor) => {
      t.exportOnnx('/dev/null', (y) => t.mul(y, 2), [target]);
      return t.mul(x, 2);
    });
    expect(() => exports(t.ones([2]))).toThrow(/exportOnnx\(\) writes a file/);
  });

  it('counts no step and draws no number for a call that it refuses', () => {
    const [generator, eager] = [new t.Generator(1), new t.Generator(1)];
    const target = t.zeros([2]);
    const f = compile(() => t.addInPlace(target, t.randn([2], { generator })));
    calls(() => f());
    const release = target.storage.hold({ start: 0, end: 8 }, 'allReduce');
    expect(() => f()).toThrow(/allReduce works on/);
    release();
    f();
    const sum = [0, 1, 2, 3].map(() => t.randn([2], { generator: eager })).reduce((a, b) => t.add(a, b));
    expect(values(target)).toEqual(values(sum));
  });

  it('frees what it found while what it keeps was still being made', () => {
    const live = () => t.device('cpu').memoryStatistics().liveStorages;
    const before = live();
    const weight = t.tensor([1, 2]);
    let moment: Tensor | null = null;
    const f = compile((x: Tensor) => {
      moment ??= t.keep(t.mul(weight, 0));
      t.addInPlace(moment, t.mul(x, weight));
    });
    t.scope(() => calls(() => f(t.ones([2]))));
    expect(f.cache).toMatchObject({ misses: 2, hits: 1 });
    f.dispose();
    weight.dispose();
    moment!.dispose();
    expect(live()).toBe(before);
  });
});
