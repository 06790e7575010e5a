import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { partsOf } from '../../../src/compile/cuda/arena.ts';
import { fullestCall } from '../../../src/compile/cuda/arena-plan.ts';
import { fusePointwise } from '../../../src/compile/passes/fuse-pointwise.ts';
import { mergeProducts } from '../../../src/compile/passes/merge-products.ts';
import { withoutRepeatedCalls } from '../../../src/compile/passes/without-repeated-calls.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { expectSameBits, opNames, graphOf } from '../traced-graph.ts';

const random = (shape: readonly number[], seed: number) =>
  t.randn(shape, { generator: new t.Generator(seed) });
const [x, y] = [random([4, 6], 1), random([4, 6], 2)];

/** The names of the remaining ops, after checking that their results are equal. */
function left(fn: () => readonly Tensor[]): string[] {
  const traced = graphOf(fn);
  const changed = withoutRepeatedCalls(traced.graph);
  expectSameBits(traced, changed);
  return opNames(changed);
}

describe('calls that repeat an earlier one', () => {
  it('are left out, with everything made from them alike', () => {
    const chain = () => t.sum(t.mul(t.exp(t.transpose(x, 0, 1)), 2), { dims: 1 });
    expect(left(() => [t.add(chain(), t.neg(chain()))])).toEqual(['exp', 'mul', 'sum', 'neg', 'add']);
    expect(left(() => [t.sub(t.matmul(x, t.transpose(y)), t.matmul(x, t.transpose(y)))])).toEqual([
      'matmul',
      'sub',
    ]);
  });

  it('of several outputs, too', () => {
    const norm = () => t.layerNorm(x, t.select(x, 0, 0), t.select(x, 0, 1));
    expect(left(() => [t.sub(norm(), norm())])).toEqual(['layerNorm', 'sub']);
    const best = () => t.topk(x, 2);
    expect(left(() => [t.add(best().values, t.cast(best().indices, 'float32'))])).toEqual([
      'topk',
      'cast',
      'add',
    ]);
  });

  it('give NaN where the first did', () => {
    const nan = t.tensor([NaN, -1, 0]);
    expect(left(() => [t.add(t.sqrt(nan), t.sqrt(nan))])).toEqual(['sqrt', 'add']);
  });

  it.each<[string, () => Tensor[], string[]]>([
    [
      'other attributes',
      () => [t.add(t.sum(x, { dims: 0 }), t.sum(x, { dims: 0, keepDims: true }))],
      ['sum', 'sum', 'add'],
    ],
    ['other numbers', () => [t.sub(t.mul(x, 2), t.mul(x, 3))], ['mul', 'mul', 'sub']],
    [
      'zeros of either sign',
      () => [t.sub(t.div(1, t.mul(x, 0)), t.div(1, t.mul(x, -0)))],
      ['mul', 'div', 'mul', 'div', 'sub'],
    ],
    ['another order', () => [t.sub(t.sub(x, y), t.sub(y, x))], ['sub', 'sub', 'sub']],
    ['other views', () => [t.add(t.exp(t.select(x, 0, 0)), t.exp(t.select(x, 0, 1)))], ['exp', 'exp', 'add']],
    ['another dtype', () => [t.add(t.cast(x, 'float64'), t.cast(x, 'bfloat16'))], ['cast', 'cast', 'add']],
    ['another op', () => [t.sub(t.exp(x), t.tanh(x))], ['exp', 'tanh', 'sub']],
  ])('stay with %s', (_, fn, names) => {
    expect(left(fn)).toEqual(names);
  });

  it('stay where an operand has been written in between', () => {
    const twice = (write: (made: Tensor) => void) => () => {
      const made = t.add(x, 1);
      const first = t.exp(made);
      write(made);
      return [t.sub(first, t.exp(made))];
    };
    const ops = ['add', 'exp', 'copy_', 'exp', 'sub'];
    expect(left(twice((made) => t.copyInPlace(made, y)))).toEqual(ops);
    // Through a view of the storage, and with the same values.
    expect(left(twice((made) => t.copyInPlace(t.select(made, 0, 2), t.select(y, 0, 0))))).toEqual(ops);
    expect(left(twice((made) => t.copyInPlace(made, made)))).toEqual(ops);
    expect(left(twice(() => {}))).toEqual(['add', 'exp', 'sub']);
  });

  it('stay where one of the results is written', () => {
    const ops = ['exp', 'exp', 'add_', 'sub'];
    const written = (first: boolean) => () => {
      const [a, b] = [t.exp(x), t.exp(x)];
      t.addInPlace(t.transpose(first ? a : b), t.transpose(y));
      return [t.sub(a, b)];
    };
    expect(left(written(true))).toEqual(ops);
    expect(left(written(false))).toEqual(ops);
  });

  it('give each result a tensor of its own', () => {
    expect(left(() => [t.exp(x), t.exp(x)])).toEqual(['exp', 'exp']);
    // A tensor that only the graph sees may be what is returned.
    expect(left(() => [t.exp(x), t.neg(t.exp(x))])).toEqual(['exp', 'neg']);
    expect(left(() => [t.neg(t.exp(x)), t.exp(x), t.exp(x)])).toEqual(['exp', 'neg', 'exp', 'exp']);
  });

  it('are not casts of captured tensors, which optimizers may write', () => {
    const twice = (from: () => Tensor) => () => [
      t.sub(t.cast(from(), 'bfloat16'), t.cast(from(), 'bfloat16')),
    ];
    expect(left(twice(() => x))).toEqual(['cast', 'cast', 'sub']);
    expect(left(twice(() => t.neg(x)))).toEqual(['neg', 'cast', 'sub']);
  });

  it('are left out though they are the first call, where what read them is left out', () => {
    const twice = () => {
      const [a, b] = [t.exp(x), t.exp(x)];
      return [t.sub(t.neg(b), t.neg(a)), b];
    };
    expect(left(twice)).toEqual(['exp', 'neg', 'sub']);
  });

  it('never are random ones', () => {
    const generator = new t.Generator(5);
    const draw = () => t.dropout(x, { p: 0.5, generator });
    const { graph } = graphOf(() => [t.sub(draw(), draw())]);
    expect(opNames(withoutRepeatedCalls(graph))).toEqual(['dropout', 'dropout', 'sub']);
    // Nor is what is made of them.
    const made = graphOf(() => [t.sub(t.exp(draw()), t.exp(draw()))]).graph;
    expect(opNames(withoutRepeatedCalls(made))).toEqual(['dropout', 'exp', 'dropout', 'exp', 'sub']);
    const noise = () => t.uniform([4, 6], { generator });
    const filled = graphOf(() => [t.sub(noise(), noise())]).graph;
    expect(withoutRepeatedCalls(filled)).toBe(filled);
  });

  it('never are those of attributes with a state', () => {
    const counted = t.defineOp<{ readonly next: () => number }>({
      name: 'counted',
      autocast: 'none',
      infer: ([a]) => [a!],
      variant: () => '',
      cuda: { kind: 'pointwise', expressions: () => ['a'] },
      cpu: {
        kind: 'host',
        run: ([a], [b], { next }) => void b!.data.fill((Number(a!.data[0]) + next()) as never),
      },
    });
    let calls = 0;
    const next = () => ++calls;
    const call = () => t.applyOne(counted, [x], { next });
    const { graph } = graphOf(() => [t.sub(call(), call())]);
    expect(withoutRepeatedCalls(graph)).toBe(graph);
  });

  it('are those of attributes that compare by value', () => {
    class Counter {
      readonly count = 1;
    }
    const op = t.defineOp<{ readonly given: unknown }>({
      name: 'given',
      autocast: 'none',
      infer: ([a]) => [a!],
      variant: () => '',
      cuda: { kind: 'pointwise', expressions: () => ['a'] },
      cpu: { kind: 'host', run: ([a], [b]) => void b!.data.set(a!.data as never) },
    });
    const calls = (given: unknown) =>
      left(() => [t.sub(t.applyOne(op, [x], { given }), t.applyOne(op, [x], { given }))]);
    const once = ['given', 'sub'];
    for (const given of [1, 'one', true, null, undefined, [1, [2, null]], { of: { one: 1 } }])
      expect([given, calls(given)]).toEqual([given, once]);
    const twice = ['given', ...once];
    const next = () => 1;
    for (const given of [next, Symbol('one'), new Counter(), new Date(0), [1, next], { next, one: 1 }])
      expect([given, calls(given)]).toEqual([given, twice]);
  });

  it('are not those that return nothing, but inspect something', () => {
    const check = t.defineOp<undefined>({
      name: 'check',
      autocast: 'none',
      infer: () => [],
      cuda: { kind: 'custom', launch: () => {} },
      cpu: { kind: 'host', run: () => {} },
    });
    const checks = () => {
      t.apply(check, [x], undefined);
      t.apply(check, [x], undefined);
      return [t.neg(x)];
    };
    expect(left(checks)).toEqual(['check', 'check', 'neg']);
  });

  it('are those of two results side by side', () => {
    const both = t.defineOp<undefined>({
      name: 'both',
      autocast: 'none',
      infer: ([a, b]) => [a!, b!],
      cuda: { kind: 'pointwise', expressions: () => ['a', 'b'] },
      cpu: {
        kind: 'host',
        run: (inputs, outputs) => outputs.forEach(({ data }, i) => data.set(inputs[i]!.data as never)),
      },
    });
    const halves = (z: Tensor) => [t.slice(z, 0, 0, 2), t.slice(z, 0, 2)];
    const joint = () => {
      const z = t.empty([4, 6]);
      t.noGrad(() => t.apply(both, halves(x), undefined, halves(z)));
      return z;
    };
    expect(left(() => [t.sub(joint(), t.exp(joint()))])).toEqual(['both', 'exp', 'sub']);
  });

  it('are not those of several results one of which is returned', () => {
    const norm = () => t.topk(x, 2);
    const both = () => {
      const [first, second] = [norm(), norm()];
      return [t.neg(first.values), second.indices, t.neg(second.values)];
    };
    expect(left(both)).toEqual(['topk', 'topk', 'neg', 'neg']);
  });

  it('are left out where the first result stays for a later repetition, whichever reads it last', () => {
    const wide = t.expand(t.view(t.select(x, 0, 0), [6, 1]), [6, 3000]);
    const exps = (fn: () => readonly Tensor[]) => left(fn).filter((name) => name === 'exp').length;
    const readers = (isFirstLast: boolean) => () => {
      const [a, b] = [t.exp(wide), t.exp(wide)];
      const early = t.sum(isFirstLast ? b : a);
      const third = () => t.sum(t.exp(wide), { dims: 0 });
      const late = () => t.sum(isFirstLast ? a : b, { dims: 1 });
      const made = third();
      return [early, made, late()];
    };
    expect([exps(readers(true)), exps(readers(false))]).toEqual([1, 1]);
    expect(exps(() => [t.exp(wide), t.sum(t.exp(wide))])).toBe(1);
    // 64 KiB exactly are kept, and no byte more.
    const behind = (length: number) => {
      const long = t.expand(t.view(t.select(x, 0, 0), [6, 1]), [6, length]);
      const row = t.expand(t.select(t.select(x, 0, 0), 0, 0), [length]);
      return exps(() => {
        const first = t.sum(t.exp(length === 16384 ? row : long));
        return [t.add(first, t.mean(t.exp(length === 16384 ? row : long)))];
      });
    };
    expect([behind(16384), behind(2731)]).toEqual([1, 2]);
  });

  it('recompute what was freed in between, except small results', () => {
    const repeated = (length: number) => () => {
      const wide = t.expand(t.view(t.select(x, 0, 0), [6, 1]), [6, length]);
      const first = t.sum(t.exp(wide));
      return [t.add(t.mul(first, 2), t.sum(t.exp(wide), { dims: 1 }))];
    };
    // 6 · 3000 float32 are more than 64 KiB; only sums of them last.
    expect(left(repeated(3000)).filter((name) => name === 'exp')).toHaveLength(2);
    expect(left(repeated(2000)).filter((name) => name === 'exp')).toHaveLength(1);
    const alive = () => {
      const wide = t.expand(t.view(t.select(x, 0, 0), [6, 1]), [6, 3000]);
      const first = t.exp(wide);
      return [t.sum(t.mul(t.sum(first), t.exp(wide))), t.sum(first, { dims: 1 })];
    };
    expect(left(alive).filter((name) => name === 'exp')).toHaveLength(1);
  });

  it('are left out where what is made of them is there, though they are not', () => {
    const wide = t.expand(t.view(t.select(x, 0, 0), [6, 1]), [6, 3000]);
    const twice = (second: (made: Tensor) => Tensor) => () => {
      const first = t.sum(t.exp(wide));
      return [t.add(t.mul(first, 2), second(t.exp(wide)))];
    };
    expect(left(twice((made) => t.sum(made))).filter((name) => name === 'exp')).toHaveLength(1);
    expect(left(twice((made) => t.mean(made))).filter((name) => name === 'exp')).toHaveLength(2);
  });

  describe('on what was written in parts', () => {
    const filled = (...rows: readonly (readonly [row: number, from: Tensor])[]) => {
      const made = t.zeros([4, 6]);
      for (const [row, from] of rows) t.copyInPlace(t.select(made, 0, row), t.select(from, 0, 0));
      return made;
    };
    const exps = (first: () => Tensor, second: () => Tensor) =>
      left(() => [t.sub(t.exp(first()), t.exp(second()))]).filter((name) => name === 'exp').length;

    it('are left out if all parts are the same', () => {
      expect(
        exps(
          () => filled([0, x], [1, y]),
          () => filled([0, x], [1, y]),
        ),
      ).toBe(1);
    });

    it.each<[string, () => Tensor]>([
      ['a part of something else', () => filled([0, x], [1, x])],
      ['another part', () => filled([0, x], [2, y])],
      ['a part fewer', () => filled([0, x])],
      ['a part more', () => filled([0, x], [1, y], [3, x])],
      ['parts in another order, one over the other', () => filled([1, y], [0, x], [1, x])],
    ])('stay with %s', (_, other) => {
      expect(exps(() => filled([0, x], [1, y]), other)).toBe(2);
    });
  });

  it('are fused ones of the same steps, but not where a step reads another one', () => {
    const rows = (fn: (y: Tensor) => Tensor) => t.sum(fn(t.neg(x)), { dims: 1 });
    const fusedOf = (second: (y: Tensor) => Tensor) => {
      const traced = graphOf(() => [
        t.sub(
          rows((y) => t.sub(y, t.exp(y))),
          t.mul(rows(second), 2),
        ),
      ]);
      const fused = fusePointwise(traced.graph);
      expect(fused.calls.filter(({ members }) => members?.length === 3)).toHaveLength(2);
      return opNames(withoutRepeatedCalls(fused, 2 ** 40)).filter((name) => name === 'fused_neg_exp_sub')
        .length;
    };
    expect(fusedOf((y) => t.sub(y, t.exp(y)))).toBe(1);
    expect(fusedOf((y) => t.sub(t.exp(y), y))).toBe(2);
  });

  it('are not products of other weights, though their members have no storages any more', () => {
    const low = (w: Tensor) => t.cast(w, 'bfloat16');
    const [h, w1, w2] = [low(random([2, 3, 16], 1)), random([16, 16], 2), random([16, 16], 3)];
    const both = (v1: Tensor, v2: Tensor) => {
      const [a, b] = [low(v1), low(v2)];
      return t.add(t.mul(t.linear(h, a), 2), t.mul(t.linear(h, b), 3));
    };
    const traced = graphOf(() => {
      const first = both(w1, w2);
      const scale = t.cast(t.sum(first), 'float32');
      return [t.sub(first, both(t.mul(w1, scale), t.mul(w2, scale)))];
    });
    const merged = mergeProducts(traced.graph);
    const products = merged.calls.filter(({ op }) => op.name === 'matmul');
    expect(products.map(({ members }) => members?.length)).toEqual([2, 2]);
    const left = withoutRepeatedCalls(merged, 2 ** 40);
    expect(left.calls.filter(({ op }) => op.name === 'matmul')).toHaveLength(2);
  });

  /** Its second run makes a matrix and an exponential of 36 MB again. */
  const checkpointed = () => {
    const weight = t.tensor(random([3000, 1], 7).toArray() as number[][], { requiresGrad: true });
    return graphOf(() => {
      const hidden = (h: Tensor) =>
        t.sum(t.exp(t.matmul(h, t.transpose(weight))), { dims: 1, keepDims: true });
      const out = t.checkpoint(hidden, t.mul(weight, t.select(t.select(x, 0, 0), 0, 0)));
      t.backward(t.sum(t.mul(out, out)));
      return [weight.grad!.detach()];
    });
  };
  const exps = (graph: Parameters<typeof opNames>[0]) =>
    opNames(graph).filter((name) => name === 'exp').length;

  it('leave the second run of a checkpoint alone', () => {
    expect(exps(withoutRepeatedCalls(checkpointed().graph))).toBe(2);
  });

  it('leave it out where there is room to keep what the first has made, and no byte less', () => {
    const traced = checkpointed();
    const needed = (graph: typeof traced.graph) => fullestCall(partsOf(graph)).bytes;
    const kept = withoutRepeatedCalls(traced.graph, 2 ** 40);
    expectSameBits(traced, kept);
    expect(exps(kept)).toBe(1);
    const least = needed(traced.graph);
    expect(exps(withoutRepeatedCalls(traced.graph, least))).toBe(2);
    const sizes = Array.from({ length: 12 }, (_, i) => least + i * 2 ** 22);
    const graphs = sizes.map((bytes) => withoutRepeatedCalls(traced.graph, bytes));
    graphs.forEach((graph, i) => expect(needed(graph)).toBeLessThanOrEqual(sizes[i]!));
    expect(new Set(graphs.map(exps))).toEqual(new Set([2, 1]));
  });
});

describe.skipIf(hostCompilerVersion() === null)('repeated calls on an emulated GPU', () => {
  const device = openEmulatedDevice();
  const on = (values: number[], requiresGrad = false) => t.tensor(values, { device, requiresGrad });

  it('are not run, with the same gradients, and reported', () => {
    const weights = [0, 1].map(() => on([1, -2, NaN, 4], true));
    const [eager, compiled] = weights.map((weight) => (given: Tensor) => {
      weight.grad?.dispose();
      weight.grad = null;
      const one = () => t.softmax(t.mul(weight, given), 0);
      const loss = t.sum(t.mul(one(), t.exp(one())));
      t.backward(loss);
      t.noGrad(() => t.addInPlace(weight, t.mul(weight.grad!, -0.25)));
      return [loss.detach(), t.softmax(given, 0), t.softmax(given, 0)] as const;
    }) as unknown as [(given: Tensor) => readonly Tensor[], (given: Tensor) => readonly Tensor[]];
    const f = t.compile(compiled);
    for (let i = 0; i < 4; i++) {
      const given = on([i, 1, 2, 3]);
      const [expected, got] = [eager(given), f(given)];
      expect(got.map((result) => result.toFlatArray())).toEqual(
        expected.map((result) => result.toFlatArray()),
      );
      expect(weights[1]!.toFlatArray()).toEqual(weights[0]!.toFlatArray());
      // Separate tensors: a write into one is not seen in the other.
      t.fillInPlace(got[1]!, 7);
      expect(got[2]!.toFlatArray()).toEqual(expected[2]!.toFlatArray());
    }
    expect(f.explain()[0]!.repeatedCalls).toBeGreaterThanOrEqual(2);
    f.dispose();
  });
});
