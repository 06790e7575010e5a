import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { CompileError, type Tensor, compile } from '../../src/index.ts';

const values = (x: Tensor) => x.toFlatArray();

function circleOf(x: Tensor): unknown {
  const outer = { inner: { x, outer: undefined as unknown } };
  outer.inner.outer = outer;
  return outer;
}

/** A function that counts its runs, compiled. */
function counting<F extends (...values: never[]) => unknown>(fn: F, options?: t.CompileOptions) {
  let runs = 0;
  const counted = ((...given: never[]) => {
    runs++;
    return fn(...given);
  }) as F;
  return { call: compile(counted, options), runs: () => runs };
}

describe('a compiled function runs again', () => {
  it('for other shapes, dtypes, modes and plain values, and not for seen ones', () => {
    const { call, runs } = counting((x: Tensor, factor: number, { relu }: { relu: boolean }) =>
      relu ? t.relu(t.mul(x, factor)) : t.mul(x, factor),
    );
    const x = t.tensor([-1, 2]);
    const calls: (() => Tensor)[] = [
      () => call(x, 2, { relu: false }),
      () => call(x, 3, { relu: false }),
      () => call(x, 2, { relu: true }),
      () => call(t.tensor([1, 2, 3]), 2, { relu: false }),
      () => call(t.tensor([1, 2], { dtype: 'float64' }), 2, { relu: false }),
      () => t.noGrad(() => call(x, 2, { relu: false })),
      () => t.autocast('bfloat16', () => call(x, 2, { relu: false })),
    ];
    const first = calls.map((each) => values(each()));
    expect(runs()).toBe(7);
    expect(calls.map((each) => values(each()))).toEqual(first);
    expect(runs()).toBe(7);
  });

  it('for arrays of numbers, dates, maps and sets that have changed', () => {
    const x = t.tensor([1]);
    const numbers = Float32Array.of(2, -0);
    const map = new Map<string, unknown>([['factor', 2]]);
    const set = new Set<unknown>([2]);
    const date = new Date(2);
    const list: unknown[] = [x, 2];
    const sparse: unknown[] = new Array(2);
    const { call, runs } = counting((x: Tensor, _given: object, factor: () => number) => t.mul(x, factor()), {
      cacheSize: 20,
    });
    const cases: readonly [object, () => number, () => void][] = [
      [numbers, () => numbers[0]!, () => (numbers[0] = 5)],
      [new DataView(numbers.buffer), () => numbers[0]!, () => (numbers[0] = 6)],
      [{ numbers: numbers.buffer }, () => numbers[0]!, () => (numbers[0] = 7)],
      [map, () => map.get('factor') as number, () => map.set('factor', 5)],
      [map.set('list', list), () => list.at(-1) as number, () => list.push(6)],
      [set, () => [...set][0] as number, () => (set.clear(), set.add(5))],
      [[date], () => date.getTime(), () => date.setTime(5)],
      [sparse, () => sparse.length, () => (sparse.length = 5)],
    ];
    for (const [given, factor, change] of cases) {
      for (let i = 0; i < 3; i++) expect(values(call(x, given, factor))).toEqual([factor()]);
      change();
      const before = runs();
      for (let i = 0; i < 3; i++) expect(values(call(x, given, factor))).toEqual([factor()]);
      expect(runs()).toBe(before + 1);
    }
    // 0 is not -0.
    const zero = () => numbers[1]!;
    expect(values(t.div(1, call(x, numbers, zero)))).toEqual([-Infinity]);
    numbers[1] = 0;
    expect(values(t.div(1, call(x, numbers, zero)))).toEqual([Infinity]);
  });

  it('once what dependOn reads has changed', () => {
    let factor = 2;
    const { call, runs } = counting((x: Tensor) =>
      t.mul(
        x,
        t.dependOn(() => factor),
      ),
    );
    const x = t.tensor([1]);
    expect([call(x), call(x)].map(values)).toEqual([[2], [2]]);
    factor = 5;
    expect([call(x), call(x)].map(values)).toEqual([[5], [5]]);
    factor = 2;
    expect(values(call(x))).toEqual([2]);
    expect(runs()).toBe(2);
  });

  it('once a parameter has been replaced, or requires a gradient no more', () => {
    const layer = { weight: t.tensor([2, 3]).requiresGrad_() };
    const { call, runs } = counting((x: Tensor) => {
      const y = t.sum(t.mul(x, layer.weight));
      if (layer.weight.requiresGrad) y.backward();
      return y.detach();
    });
    const x = t.tensor([1, 1]);
    expect([call(x), call(x), call(x)].map((y) => y.item())).toEqual([5, 5, 5]);
    expect(values(layer.weight.grad!)).toEqual([3, 3]);
    const before = runs();
    layer.weight.requiresGrad_(false);
    expect([call(x), call(x)].map((y) => y.item())).toEqual([5, 5]);
    expect(runs()).toBe(before + 1);
    layer.weight.dispose();
    layer.weight = t.tensor([10, 20]);
    expect([call(x), call(x)].map((y) => y.item())).toEqual([30, 30]);
    expect(runs()).toBe(before + 2);
  });

  it('when a gradient is there that was not, and adds to it from then on', () => {
    const weight = t.tensor([1, 2]).requiresGrad_();
    const { call, runs } = counting((x: Tensor) => t.sum(t.mul(x, weight)).backward());
    for (let i = 0; i < 4; i++) call(t.tensor([1, 10 ** i]));
    expect(values(weight.grad!)).toEqual([4, 1111]);
    expect(runs()).toBe(2);
    weight.grad!.dispose();
    weight.grad = null;
    call(t.tensor([7, 7]));
    expect(values(weight.grad!)).toEqual([7, 7]);
    expect(runs()).toBe(2);
  });

  it('until what it keeps is there, as an optimizer makes its moments', () => {
    let moment: Tensor | null = null;
    const { call, runs } = counting((x: Tensor) => {
      moment ??= t.keep(t.zerosLike(x));
      t.addInPlace(moment, x);
    });
    for (let i = 0; i < 5; i++) call(t.tensor([i, 1]));
    expect(values(moment!)).toEqual([10, 5]);
    expect(runs()).toBe(2);
  });

  it('for signatures beyond its cache, and warns once', async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error) => warnings.push(warning);
    process.on('warning', listen);
    const { call, runs } = counting((x: Tensor) => t.mul(x, 2), { cacheSize: 2 });
    for (const size of [1, 2, 3, 3, 4, 1]) call(t.ones([size]));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listen);
    expect(runs()).toBe(5);
    expect(call.cache).toEqual({ size: 2, capacity: 2, hits: 1, misses: 5 });
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/more than 2 signatures.*pad the shapes.*pass numbers that change as tensors/),
    ]);
  });
});

describe('a compiled function refuses', () => {
  it.each<[string, (x: Tensor) => unknown, RegExp]>([
    ['values of the host', (x) => t.mul(x, t.tensor([1, 2])), /filled with values of the host/],
    ['results that are no tensors', (x) => ({ y: t.mul(x, 2), at: 5 }), /the result\.at is 5/],
    ['results that hold themselves', (x) => circleOf(t.mul(x, 2)), /the result\.inner\.outer holds itself/],
    ['results with a history', (x) => t.mul(x, weight), /has a history.*detach\(\)/],
    ['moves between devices', (x) => t.mul(x, 2).toTypedArray(), /the host reads/],
  ])('%s', (_, fn, message) => {
    const live = t.device('cpu').memoryStatistics().liveStorages;
    const call = compile(fn as (x: Tensor) => Tensor);
    const run = () => t.scope(() => void call(t.tensor([1, 2])));
    expect(run).toThrow(CompileError);
    expect(run).toThrow(message);
    expect(t.device('cpu').memoryStatistics().liveStorages).toBe(live);
  });

  const weight = t.tensor([1, 2]).requiresGrad_();

  it('tensors that stay behind at every call', () => {
    const kept: Tensor[] = [];
    const call = compile((x: Tensor) => {
      kept.push(t.keep(t.exp(x)));
    });
    const run = () => {
      for (let i = 0; i < 8; i++) call(t.tensor([1, 2]));
    };
    expect(run).toThrow(/a tensor \[2\] of the op exp stays behind at every call/);
  });

  it('what it refuses also where the function catches that, and would go another way', () => {
    const buffer = t.ones([4]);
    const reads = compile((x: Tensor) => {
      let factor = -1;
      try {
        factor = t.sum(x).item() as number;
      } catch {
        // Goes on without.
      }
      return t.mul(x, factor);
    });
    const shares = compile((x: Tensor) => {
      try {
        t.addInPlace(buffer, t.ones([4]));
      } catch {
        // Goes on without.
      }
      return t.mul(x, 2);
    });
    for (let i = 0; i < 2; i++) {
      expect(() => reads(t.ones([2]))).toThrow(/the host reads a tensor/);
      expect(() => shares(t.slice(buffer, 0, 0, 2))).toThrow(/shares memory/);
    }
  });

  it('gradients that it takes from a leaf without freeing them, and says how', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    const call = compile((x: Tensor) => {
      t.sum(t.mul(x, leaf)).backward();
      leaf.grad = null;
    });
    const run = () => {
      for (let i = 0; i < 8; i++) call(t.ones([2]));
    };
    expect(run).toThrow(
      /the gradient of a leaf \[2\], which the function has taken from it, stays.*dispose\(\)/,
    );
  });

  it('to set on the host what replays would not', () => {
    const generator = new t.Generator(1);
    const begins = compile((x: Tensor) => {
      generator.offset = 0;
      return t.dropout(x, { generator });
    });
    const isPrecise = compile((x: Tensor) => {
      t.setFloat32MatmulPrecision('high');
      return t.matmul(x, x);
    });
    expect(() => begins(t.ones([2]))).toThrow(/a Generator's offset is set.* Set it before each call/);
    expect(() => isPrecise(t.ones([2, 2]))).toThrow(/the precision of float32 products is set/);
    expect(t.getFloat32MatmulPrecision()).toBe('highest');
  });

  it('a cache of no program', () => {
    expect(() => compile(() => {}, { cacheSize: 0 })).toThrow(
      /cacheSize must be a whole number of one or more/,
    );
  });

  it('hooks of gradients', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    leaf.onGradientAccumulated(() => {});
    const call = compile((x: Tensor) => t.sum(t.mul(x, leaf)).backward());
    expect(() => call(t.ones([2]))).toThrow(/a hook runs when a gradient has come/);
    expect(leaf.grad).toBeNull();
  });

  it('to write memory that something else works on', () => {
    const target = t.zeros([4]);
    const call = compile((x: Tensor) => t.addInPlace(t.slice(target, 0, 0, 2), x));
    const x = t.ones([2]);
    for (let i = 0; i < 2; i++) call(x);
    const [first, second] = [0, 8].map((start) =>
      target.storage.hold({ start, end: start + 8 }, 'allReduce'),
    );
    expect(() => call(x)).toThrow(/compile: the program writes 8 bytes that allReduce works on/);
    first!();
    call(x);
    second!();
    expect(values(target)).toEqual([3, 3, 0, 0]);
  });

  it.each<[string, (given: { x: Tensor; all: Tensor[]; count: number }) => unknown]>([
    ['puts a tensor into an object', (given) => Object.assign(given, { y: t.keep(t.exp(given.x)) })],
    ['puts another tensor in the place of one', (given) => (given.x = t.keep(t.exp(given.x)))],
    ['lengthens an array', ({ x, all }) => all.push(t.mul(x, 2))],
    ['reorders an array', ({ x, all }) => (t.mul(x, 2), all.reverse())],
    ['counts', (given) => t.mul(given.x, ++given.count)],
    ['counts, and runs no op', (given) => given.count++],
  ])('to change its arguments, of which it has copies: one that %s', (_, change) => {
    const call = compile((given: Parameters<typeof change>[0]) => void change(given));
    const given = { x: t.ones([2]), all: [t.ones([2]), t.zeros([2])], count: 5, not: NaN };
    for (let i = 0; i < 2; i++)
      expect(() => call(given)).toThrow(/puts something into an array or an object among its arguments/);
    expect([Object.keys(given), given.all.length]).toEqual([['x', 'all', 'count', 'not'], 2]);
  });

  it('to dispose of an argument, which its caller would keep', () => {
    const call = compile((x: Tensor) => {
      const y = t.mul(x, 2);
      x.dispose();
      return y;
    });
    expect(() => call(t.ones([2]))).toThrow(/disposes of an argument.* dispose of it outside/);
  });

  it('results that require a gradient of their own', () => {
    const input = (x: Tensor) => {
      const leaf = t.mul(x, 2).detach().requiresGrad_();
      t.sum(t.mul(leaf, leaf)).backward();
      return [leaf, leaf.grad!];
    };
    for (const call of [compile(input), compile((x: Tensor) => [t.exp(x), weight.detach().requiresGrad_()])])
      expect(() => call(t.ones([2]))).toThrow(/is a leaf that requires a gradient.* return detach\(\) of it/);
    const call = compile((x: Tensor) => input(x).map((each) => each.detach()));
    for (let i = 0; i < 3; i++) expect(call(t.tensor([i, 1])).map(values)).toEqual([[2 * i, 2], [4 * i, 4]]); // prettier-ignore
  });

  it('results with a history that it made inside noGrad(), and gives those that it found', () => {
    const made = compile((x: Tensor) => t.enableGrad(() => t.mul(weight, x)));
    const history = t.mul(weight, 2);
    const found = compile((x: Tensor) => [t.mul(x, 2), history]);
    for (let i = 0; i < 2; i++) {
      expect(() => t.noGrad(() => made(t.ones([2])))).toThrow(/has a history.*detach\(\)/);
      expect(t.noGrad(() => found(t.ones([2])))[1]).toBe(history);
    }
  });

  it('async functions, arguments with a history and circles', () => {
    expect(() => compile(async () => {})).toThrow(/compile: the function is async/);
    expect(() => compile((x: Tensor) => Promise.resolve(t.exp(x)))(t.ones([2]))).toThrow(
      /compile: the function .* returned a promise/,
    );
    const call = compile((x: unknown) => x);
    expect(() => call(t.mul(weight, 2))).toThrow(/an argument has a history/);
    const circle: unknown[] = [];
    circle.push(circle);
    expect(() => call(circle)).toThrow(/holds itself/);
    const map = new Map<unknown, unknown>();
    expect(() => call(map.set('map', map))).toThrow(/holds itself/);
    expect(() => call({ [Symbol('key')]: 1 })).toThrow(/Symbol\(key\) is no key/);
  });
});

describe('a compiled function', () => {
  it('takes a tensor twice, views, and what it writes to', () => {
    const both = compile((x: Tensor, y: Tensor) => t.sub(t.mul(x, 2), y));
    const write = compile((x: Tensor) => t.addInPlace(x, t.ones([2], { dtype: 'float32' })));
    const base = t.tensor([[1, 2], [3, 4]]); // prettier-ignore
    const column = t.select(base, 1, 1);
    for (let i = 0; i < 3; i++) {
      expect(values(both(column, column))).toEqual(values(column));
      write(column);
    }
    expect(values(base)).toEqual([1, 5, 3, 7]);
  });

  it('gives results of its own', () => {
    const call = compile((x: Tensor) => t.mul(x, 2));
    const results = [1, 2, 3, 4].map((value) => call(t.tensor([value])));
    expect(results.map((x) => x.item())).toEqual([2, 4, 6, 8]);
    t.fillInPlace(results[3]!, 0);
    expect(call(t.tensor([5])).item()).toBe(10);
  });

  it('holds no more memory after a thousand calls', () => {
    const weight = t.tensor([1, 2]).requiresGrad_();
    const call = compile((x: Tensor) => {
      weight.grad?.dispose();
      weight.grad = null;
      const loss = t.sum(t.mul(t.exp(x), weight));
      loss.backward();
      return loss.detach();
    });
    const live = () => t.device('cpu').memoryStatistics().liveStorages;
    const x = t.tensor([1, 2]);
    for (let i = 0; i < 3; i++) call(x).dispose();
    const before = live();
    for (let i = 0; i < 1000; i++) call(x).dispose();
    expect(live()).toBe(before);
    call.dispose();
    expect(live()).toBe(before);
    expect(call.cache.size).toBe(0);
    expect(call(x).item()).toBeCloseTo(Math.E + 2 * Math.E ** 2, 5);
  });

  it('frees what a failed replay has made', () => {
    const call = compile((logits: Tensor, targets: Tensor) => t.crossEntropy(t.mul(logits, 2), targets));
    const logits = t.randn([2, 3]);
    const run = (second: number) =>
      t.scope(() => call(logits, t.tensor([0, second], { dtype: 'int64' })).item());
    const fine = run(2);
    expect(run(2)).toBe(fine);
    const live = t.device('cpu').memoryStatistics().liveStorages;
    expect(() => run(3)).toThrow(/crossEntropy: target 3 at position 1/);
    expect(t.device('cpu').memoryStatistics().liveStorages).toBe(live);
    expect(run(2)).toBe(fine);
  });

  it('is a part of the compiled function that calls it', () => {
    let inner = 0;
    const double = compile((x: Tensor) => {
      inner++;
      return t.mul(x, 2);
    });
    const call = compile((x: Tensor) => t.add(double(x), double(double(x))));
    expect([1, 2, 3].map((value) => call(t.tensor([value])).item())).toEqual([6, 12, 18]);
    expect(inner).toBe(3);
    expect(double.cache).toMatchObject({ hits: 0, misses: 0 });
  });

  it('shows observers its ops, in their ranges', () => {
    const call = compile((x: Tensor) => t.range('outer', () => t.relu(t.mul(x, 2))));
    const x = t.tensor([1]);
    const seen = () => {
      const names: string[] = [];
      const stop = t.observeOps({
        before: ({ name }) => names.push([...t.currentRange(), name].join('/')),
      });
      call(x);
      stop();
      return names.filter((name) => name.startsWith('outer'));
    };
    call(x);
    expect(seen()).toEqual(['outer/mul', 'outer/relu']);
  });

  it('keeps the phases of its ops, below the ranges that are around its call then', () => {
    const call = compile((x: Tensor) => t.range('forward', () => t.range('layer', () => t.mul(x, 2))));
    const x = t.tensor([1]);
    const pathIn = (outer: string) => {
      let path = '';
      const stop = t.observeOps({ before: () => (path = t.currentRange().join('/')) });
      t.range(outer, () => call(x));
      stop();
      return path;
    };
    expect(['first', 'second', 'third'].map(pathIn)).toEqual([
      'first/forward/layer',
      'second/forward/layer',
      'third/forward/layer',
    ]);
    expect(call.cache).toMatchObject({ misses: 1, hits: 2 });
  });

  it('explains what became of it', () => {
    const call = compile((x: Tensor) => {
      t.sum(t.exp(x));
      return t.relu(t.mul(x, 2));
    });
    expect(call.explain()).toEqual([]);
    call(t.ones([64]));
    const [program] = call.explain();
    expect(program).toMatchObject({ device: 'cpu', tracedCalls: 4, calls: 2, launches: 1, arenaBytes: 0 });
    expect(program!.nodesBefore).toBe(program!.nodes);
    expect(program!.table).toMatchObject([
      { op: 'mul', members: [], inputs: [{ source: 'argument', shape: [64] }], launch: 0, nodes: null },
      { op: 'relu', outputs: [{ source: 'made', dtype: 'float32' }], launch: 0 },
    ]);
    expect(program!.table[1]!.inputs[0]!.storage).toBe(program!.table[0]!.outputs[0]!.storage);
    expect(program!.eagerPeakBytes).toBeGreaterThanOrEqual(2 * 256);
  });

  it('keeps to the tape: what backward saved before a replay wrote it is an error', () => {
    const weight = t.tensor([1, 2]).requiresGrad_();
    const step = compile(() => t.noGrad(() => t.addInPlace(weight, t.ones([2]))));
    step();
    const loss = t.sum(t.mul(weight, t.mul(weight, 3)));
    step();
    expect(() => loss.backward()).toThrow(/written in place/);
  });
});
