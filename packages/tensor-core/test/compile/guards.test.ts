import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { type Tensor, compile } from '../../src/index.ts';

const values = (x: Tensor) => x.toFlatArray();

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

  it('once a parameter has been replaced, or no longer requires a gradient', () => {
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

  it('when there is a gradient that was not there, and adds to it from then on', () => {
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

  it('when a gradient has moved inside one flat buffer, or has another layout there', () => {
    const weight = t
      .tensor([
        [1, 2],
        [3, 4],
      ])
      .requiresGrad_();
    const flat = t.zeros([8]);
    const { call, runs } = counting((x: Tensor) => t.sum(t.mul(x, weight)).backward());
    const x = t.tensor([
      [1, 10],
      [100, 1000],
    ]);
    const part = (at: number) => t.view(t.slice(flat, 0, at, at + 4), [2, 2]);
    const [first, second] = [part(0), part(4)];
    weight.grad = first;
    for (let i = 0; i < 3; i++) call(x);
    expect([values(flat), runs()]).toEqual([[3, 30, 300, 3000, 0, 0, 0, 0], 1]);
    weight.grad = second;
    for (let i = 0; i < 3; i++) call(x);
    expect([values(flat), runs()]).toEqual([[3, 30, 300, 3000, 3, 30, 300, 3000], 2]);
    weight.grad = t.transpose(part(4));
    for (let i = 0; i < 2; i++) call(x);
    expect([values(flat), runs()]).toEqual([[3, 30, 300, 3000, 5, 230, 320, 5000], 3]);
    weight.grad = first;
    call(x);
    expect([values(flat).slice(0, 4), runs()]).toEqual([[4, 40, 400, 4000], 3]);
  });

  it('until what it keeps exists, such as the moments that an optimizer makes', () => {
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
      expect.stringMatching(
        /more than 2 signatures.*in shapes, in numbers.*objects of classes.*larger cacheSize/,
      ),
    ]);
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

  it('becomes part of the compiled function that calls it', () => {
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

  it('keeps the phases of its ops, below the ranges around its call', () => {
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

  it('explains what happened to it', () => {
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
