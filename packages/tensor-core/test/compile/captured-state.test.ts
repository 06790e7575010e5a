import { describe, expect, it, vi } from 'vitest';
import * as t from '../../src/index.ts';
import { type Tensor, compile } from '../../src/index.ts';

const layers = 5;

/** Calls `run` for each of a few calls: the first captures the graph, the others replay it. */
const calls = <T>(run: (call: number) => T): T[] => [0, 1, 2].map(run);

/** A function of many parameters, compiled and run until it has a specialization. */
function makeProgram() {
  let runs = 0;
  const weights = Array.from({ length: layers }, (_, i) => t.tensor([i + 1, 1]).requiresGrad_());
  const call = compile((x: Tensor) => {
    runs++;
    const y = weights.reduce((product, weight) => t.mul(product, weight), x);
    return t.sum(y).detach();
  });
  const x = t.tensor([1, 2]);
  const run = () => t.scope(() => call(x).item() as number);
  expect([run(), run()]).toEqual([122, 122]);
  return { weights, run, runs: () => runs, dispose: () => call.dispose() };
}

describe('a specialization checks what it has captured', () => {
  it('not at all where nothing has changed', () => {
    const { weights, run, runs, dispose } = makeProgram();
    run();
    const looks = vi.spyOn(t.Tensor.prototype, 'requiresGrad', 'get');
    // Changes to tensors that no specialization has captured do not matter.
    t.scope(() => t.addInPlace(t.tensor([1, 2]), t.tensor([1, 2])));
    expect(run()).toBe(122);
    expect(looks.mock.contexts.filter((x) => weights.includes(x as Tensor))).toEqual([]);
    expect(runs()).toBe(1);
    looks.mockRestore();
    dispose();
  });

  const happenings: [string, (weights: Tensor[]) => void, number, number][] = [
    ['written', ([w]) => t.noGrad(() => t.copyInPlace(w!, t.mul(w!, 2))), 244, 1],
    ['written in part', ([w]) => t.noGrad(() => t.copyInPlace(t.slice(w!, 0, 0, 1), t.tensor([2]))), 242, 1],
    ['made to need no gradient', ([w]) => w!.requiresGrad_(false), 122, 2],
    ['given another handle', ([w]) => t.noGrad(() => t.slice(w!, 0, 0, 1)).dispose(), 122, 1],
    ['given a gradient', ([w]) => (w!.grad = t.tensor([1, 1])), 122, 1],
  ];
  it.each(happenings)('once one of them is %s', (_, happen, expected, expectedRuns) => {
    const { weights, run, runs, dispose } = makeProgram();
    for (let i = 0; i < 3; i++) run();
    t.scope(() => {
      happen(weights);
      weights[0]!.grad = null;
    });
    expect([run(), run()]).toEqual([expected, expected]);
    expect(runs()).toBe(expectedRuns);
    dispose();
  });

  it('where others train the same parameters in turn', () => {
    const weight = t.tensor([1, 2]).requiresGrad_();
    const train = compile((x: Tensor) => {
      t.sum(t.mul(x, weight)).backward();
      t.noGrad(() => t.addInPlace(weight, t.mul(weight.grad!, -1)));
      weight.grad!.dispose();
      weight.grad = null;
    });
    const evaluate = compile((x: Tensor) => t.noGrad(() => t.sum(t.mul(x, weight))));
    const x = t.tensor([1, 1]);
    const seen: unknown[] = [];
    for (let i = 0; i < 6; i++) {
      train(x);
      seen.push(evaluate(x).item());
      if (i === 3) t.noGrad(() => t.addInPlace(weight, t.tensor([10, 10])));
    }
    expect(seen).toEqual([1, -1, -3, -5, 13, 11]);
    expect(train.cache.misses + evaluate.cache.misses).toBe(2);
    // Its writes are still known when the specialization is gone.
    const saved = t.sum(t.mul(weight, weight));
    train(x);
    train.dispose();
    expect(() => saved.backward()).toThrow(t.AutogradError);
  });

  it('and leaves them alone once it is disposed', () => {
    const { weights, dispose } = makeProgram();
    expect(weights.every(({ storage }) => storage.isWatched)).toBe(true);
    dispose();
    expect(weights.some(({ storage }) => storage.isWatched)).toBe(false);
    for (const weight of weights) weight.dispose();
  });

  it('and distinguishes gradients from other handles to their memory, which may move apart', () => {
    const [a, b] = [t.tensor([1, 2]).requiresGrad_(), t.tensor([3, 4]).requiresGrad_()];
    const held = t.tensor([1, 1]);
    a.grad = t.alias(held);
    b.grad = t.alias(held);
    const differences = compile(() => [t.sub(a.grad!, held), t.sub(a.grad!, b.grad!)]);
    const seen = () => differences().map((x) => x.toFlatArray());
    expect([seen(), seen()]).toEqual([[[0, 0], [0, 0]], [[0, 0], [0, 0]]]); // prettier-ignore
    a.grad = t.tensor([7, 7]);
    expect(seen()).toEqual([[6, 6], [6, 6]]); // prettier-ignore
    b.grad = t.tensor([5, 6]);
    expect([seen(), seen()]).toEqual([[[6, 6], [2, 1]], [[6, 6], [2, 1]]]); // prettier-ignore
    expect(differences.cache.misses).toBe(3);
  });

  it('and accepts no gradient of another dtype or layout than it was captured with', () => {
    const run = (wrap: (fn: (x: Tensor) => void) => (x: Tensor) => void) => {
      const leaf = t.tensor([[1, 2], [3, 4]]).requiresGrad_(); // prettier-ignore
      const flat = t.zeros([6]);
      const inFlat = () => t.view(t.slice(flat, 0, 1, 5), [2, 2]);
      const add = wrap((x: Tensor) => t.sum(t.mul(leaf, x)).backward());
      const gradients = [
        () => t.zeros([2, 2]),
        () => t.zeros([2, 2], { dtype: 'bfloat16' }),
        inFlat,
        () => t.transpose(inFlat(), 0, 1),
      ];
      return gradients.flatMap((make) => {
        leaf.grad = make();
        const seen = calls((call) => (add(t.tensor([[1, 2], [3, call]])), leaf.grad!.toFlatArray())); // prettier-ignore
        return [seen, leaf.grad.dtype, flat.toFlatArray()];
      });
    };
    expect(run((fn) => compile(fn))).toEqual(run((fn) => fn));
  });

  it('and notices gradients that now share memory, with each other or with a captured tensor', () => {
    const run = (wrap: (fn: () => Tensor) => () => Tensor) => {
      const [a, b] = [t.tensor([1, 2]).requiresGrad_(), t.tensor([3, 4]).requiresGrad_()];
      const table = t.tensor([10, 20]);
      const accumulate = wrap(() => {
        t.sum(t.mul(a, b)).backward();
        return t.add(t.sub(a.grad!, b.grad!), table);
      });
      const gradients: (() => [Tensor, Tensor])[] = [
        () => [t.zeros([2]), t.zeros([2])],
        () => [t.alias(table), t.zeros([2])],
        () => {
          const both = t.zeros([2]);
          return [t.alias(both), t.alias(both)];
        },
      ];
      return gradients.map((make) => {
        [a.grad, b.grad] = make();
        return calls(() => [accumulate(), a.grad!, b.grad!, table].map((x) => x.toFlatArray()));
      });
    };
    expect(run((fn) => compile(fn))).toEqual(run((fn) => fn));
  });

  it('and returns what it found as it found it, while views of that are the caller’s to dispose of', () => {
    const [weight, table] = [t.tensor([1, 2]).requiresGrad_(), t.tensor([3, 4])];
    const f = compile((x: Tensor) => [t.mul(x, 2), weight, table, weight.detach(), t.slice(table, 0, 0, 1)]);
    calls(() => {
      const [made, sameWeight, sameTable, ...views] = f(t.ones([2]));
      expect([sameWeight === weight, sameTable === table]).toEqual([true, true]);
      expect(views.map((x) => x.toFlatArray())).toEqual([[1, 2], [3]]);
      for (const x of [made!, ...views]) x.dispose();
    });
    expect(f.cache).toMatchObject({ misses: 1, hits: 2, size: 1 });
    weight.requiresGrad_(false);
    f(t.ones([2]));
    expect(f.cache.misses).toBe(2);
  });

  const uses: [string, (x: Tensor, w: Tensor) => Tensor][] = [
    ['a view', (x, w) => t.matmul(x, t.transpose(w))],
    ['a view of a view', (x, w) => t.mul(x, t.select(t.slice(w, 0, 0, 1), 0, 0))],
    ['a checkpoint', (x, w) => t.checkpoint((a, b) => t.matmul(a, t.transpose(b)), x, w)],
    ['its flag', (x, w) => (w.requiresGrad ? t.mul(x, t.sum(w)) : x)],
  ];
  it.each(uses)('and notices a leaf that is frozen, or thawed, after %s', (_, use) => {
    const run = (wrap: (fn: (x: Tensor) => void) => (x: Tensor) => void) => {
      const [w, scale] = [t.tensor([[1, 2], [3, 4]]).requiresGrad_(), t.tensor([1, 1]).requiresGrad_()]; // prettier-ignore
      const step = wrap((x) => t.sum(use(t.mul(x, scale), w)).backward());
      return [true, false, true].map((isTrained) => {
        w.requiresGrad_(isTrained);
        return calls((call) => {
          t.scope(() => step(t.tensor([1, call])));
          return [w.grad?.toFlatArray(), scale.grad!.toFlatArray()];
        });
      });
    };
    expect(run((fn) => compile(fn))).toEqual(run((fn) => fn));
  });

  it('and notices that the leaf of a view has been disposed, though others see its memory', () => {
    const flat = t.tensor([1, 2, 3, 4]);
    const w = t.view(flat, [2, 2]).requiresGrad_();
    const x = t.tensor([1, 1]);
    const step = compile(() => t.sum(t.matmul(x, t.transpose(w))).backward());
    calls(() => step());
    w.dispose();
    expect(() => step()).toThrow(t.DisposedError);
    expect(flat.toFlatArray()).toEqual([1, 2, 3, 4]);
  });

  it('and notices that a leaf has been disposed of which it read only the gradient', () => {
    let leaf = t.tensor([1, 2]).requiresGrad_();
    const f = compile((x: Tensor) => (leaf.grad ? t.add(x, leaf.grad) : t.mul(x, 2)));
    expect(calls(() => f(t.tensor([3, 3])).toFlatArray())).toEqual([[6, 6], [6, 6], [6, 6]]); // prettier-ignore
    leaf.dispose();
    leaf = t.tensor([1, 2]).requiresGrad_();
    leaf.grad = t.tensor([10, 20]);
    expect(f(t.tensor([3, 3])).toFlatArray()).toEqual([13, 23]);
  });

  it('and adds to no gradient that has been disposed', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    const add = compile((x: Tensor) => t.sum(t.mul(leaf, x)).backward());
    calls(() => add(t.ones([2])));
    t.scope(() => void (leaf.grad = t.mul(leaf.grad!, 2)));
    expect(() => add(t.ones([2]))).toThrow(t.DisposedError);
    leaf.grad = null;
    expect(calls(() => (add(t.ones([2])), leaf.grad!.toFlatArray()))).toEqual([[1, 1], [2, 2], [3, 3]]); // prettier-ignore
  });

  it('and knows whether what ops before it saved for its gradients still exists', () => {
    const run = (wrap: (fn: () => void) => () => void) =>
      [false, true].map((retainGraph) => {
        const leaf = t.tensor([1, 2]).requiresGrad_();
        const [square, part] = [t.mul(leaf, leaf), t.slice(leaf, 0, 0, 1)];
        const toView = wrap(() => t.sum(t.mul(part, 3)).backward());
        const toSquare = wrap(() => t.backward(t.sum(t.mul(square, 3)), undefined, { retainGraph }));
        return [0, 1, 2, 3, 4, 5].map((call) => {
          leaf.grad = null;
          if (call === 4) t.noGrad(() => t.addInPlace(leaf, t.ones([2])));
          try {
            toView();
            toSquare();
          } catch (error) {
            return (error as Error).message;
          }
          return leaf.grad!.toFlatArray();
        });
      });
    const programs: t.CompiledFunction<() => void>[] = [];
    const seen = run((fn) => (programs.push(compile(fn)), programs.at(-1)!));
    expect(seen).toEqual(run((fn) => fn));
    expect(seen.map((calls) => calls.filter((each) => typeof each === 'string').length)).toEqual([5, 2]);
    expect(programs.map(({ cache }) => cache.hits)).toEqual([5, 0, 5, 3]);
  });

  it('and can follow the backward passes of others, whose hooks run and whose gradients go to a flat buffer', () => {
    const run = (wrap: (fn: () => void) => () => void) => {
      const leaf = t.tensor([1, 2]).requiresGrad_();
      leaf.setGradientBuffer(t.slice(t.zeros([4]), 0, 2, 4));
      const step = wrap(() => t.noGrad(() => t.addInPlace(leaf, t.mul(leaf.grad!, -2))));
      return [0, 1, 2, 3].map((call) => {
        if (call === 1) leaf.onGradientAccumulated(() => {});
        leaf.grad?.dispose();
        leaf.grad = null;
        t.scope(() => t.sum(t.mul(leaf, leaf)).backward());
        step();
        return leaf.toFlatArray();
      });
    };
    const compiled: t.CompiledFunction<() => void>[] = [];
    const seen = run((fn) => (compiled.push(compile(fn)), compiled[0]!));
    expect(seen).toEqual(run((fn) => fn));
    // Captured again once there is a hook: a graph without one may contain a backward pass.
    expect(compiled[0]!.cache).toMatchObject({ misses: 2, hits: 2 });
  });

  it('and runs no backward pass past a hook that was added', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    const train = compile(() => t.sum(t.mul(leaf, leaf)).backward());
    calls(() => train());
    leaf.onGradientAccumulated(() => {});
    expect(() => train()).toThrow(/a hook runs when a gradient has come/);
  });

  it('and lets go of what only it still holds, once its owner has disposed of it', () => {
    let table = t.tensor([1, 2]);
    const f = compile((x: Tensor) => t.mul(x, table));
    const live = () => t.device('cpu').memoryStatistics().liveStorages;
    const run = () => t.scope(() => f(t.ones([2])).toFlatArray());
    calls(run);
    const before = live();
    table.dispose();
    table = t.tensor([5, 6]);
    expect(run()).toEqual([5, 6]);
    expect([live(), f.cache.size]).toEqual([before, 1]);
  });

  it('and notices a leaf that was disposed of, of which it takes only a view and records nothing', () => {
    const flat = t.tensor([1, 2, 3, 4]);
    const w = t.view(flat, [2, 2]).requiresGrad_();
    const f = compile((x: Tensor) => t.matmul(x, t.transpose(w)).detach());
    calls(() => f(t.ones([1, 2])));
    w.dispose();
    expect(() => f(t.ones([1, 2]))).toThrow(t.DisposedError);
  });

  it('and what becomes of its results does not concern it', () => {
    const f = compile((x: Tensor) => {
      const y = t.keep(t.mul(x, 2));
      return [y, t.add(y, 1)];
    });
    const [first] = f(t.ones([2]));
    first!.requiresGrad_();
    for (const x of f(t.ones([2]))) x.dispose();
    first!.dispose();
    f(t.ones([2]));
    expect(f.cache).toMatchObject({ misses: 1, hits: 2 });
  });
});
