import { describe, expect, it } from 'vitest';
import { fullestCall } from '../../../src/compile/cuda/arena-plan.ts';
import { partsOf } from '../../../src/compile/cuda/arena.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { mergeProducts } from '../../../src/compile/passes/merge-products.ts';
import { readTogether } from '../../../src/compile/passes/read-together.ts';
import * as t from '../../../src/index.ts';
import type { AutocastDType, DType, Op, Tensor } from '../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice, openPlanningDevice } from '../../../src/testing.ts';
import { NotedOrder, tell } from '../ordered-effects-op.ts';
import { expectSameBits, graphOf, opNames } from '../traced-graph.ts';
import { namesAfter } from './names-after.ts';

const device = openPlanningDevice();
const order = new NotedOrder();
const tensor = (dtype: DType = 'float32') => t.zeros([16, 16], { device, dtype });

/** As swigluBackward: reads the gradient of its result, and all that the forward op has read. */
const both: Op<undefined> = t.defineOp({
  name: 'both',
  autocast: 'none',
  infer: ([, a, b]) => [a!, b!],
  cuda: { kind: 'pointwise', expressions: () => ['a * c', 'a * b'] },
  cpu: { kind: 'host', run: () => {} },
});

/** Two element-wise calls that read `h`; `between` makes results of what the first makes, and what the second reads. */
interface Parts {
  readonly first?: (h: Tensor) => Tensor;
  readonly between: (s: Tensor, h: Tensor) => { readonly kept: Tensor[]; readonly ds: Tensor };
  readonly second?: (ds: Tensor, h: Tensor, s: Tensor) => Tensor[];
  readonly dtype?: DType;
}

const [dy, v] = [tensor(), tensor()];
const gradient = (s: Tensor, of = dy) => t.matmul(t.transpose(of), s);
const apart: Parts['between'] = (s) => ({ kept: [gradient(s)], ds: t.matmul(dy, v) });

function program({ first = t.exp, between, second = (ds, h) => [t.mul(ds, h)], dtype }: Parts) {
  return () =>
    t.scope(() => {
      const h = t.softmax(tensor(dtype), -1);
      const s = first(h);
      const { kept, ds } = between(s, h);
      return [...kept, ...second(ds, h, s)];
    });
}

const fused = (parts: Parts) =>
  namesAfter(device, readTogether, program(parts)).filter((name) => name.startsWith('fused'));

describe('readTogether', () => {
  const low = (dtype: DType): Parts => {
    const [lowDy, lowV] = [tensor(dtype), tensor(dtype)];
    const between = (s: Tensor) => ({ kept: [gradient(s, lowDy)], ds: t.matmul(lowDy, lowV) });
    return { between, dtype };
  };
  it.each<[string, Parts, string]>([
    ['what the first makes is needed after the second', { between: apart }, 'fused_exp_mul'],
    ['nothing lies between', { between: (s) => ({ kept: [s], ds: dy }) }, 'fused_exp_mul'],
    ['the operands are bfloat16', low('bfloat16'), 'fused_exp_mul'],
    ['the operands are float16', low('float16'), 'fused_exp_mul'],
    [
      'the second reads the first',
      { between: apart, second: (ds, h, s) => [t.where(t.greater(ds, 0), h, s)] },
      'fused_exp_where',
    ],
    [
      'what the first makes is a result',
      { between: (s) => ({ kept: [gradient(s), s], ds: t.matmul(dy, v) }) },
      'fused_exp_mul',
    ],
    [
      'what the first makes is overwritten in between',
      {
        between: (s) => {
          t.fillInPlace(t.slice(s, 0, 0, 1), 1);
          return { kept: [gradient(s)], ds: t.matmul(dy, v) };
        },
      },
      'fused_exp_mul',
    ],
    [
      'the first writes in place',
      {
        first: (h) => {
          t.addInPlace(h, dy);
          return h;
        },
        between: (s) => ({ kept: [gradient(s)], ds: t.greater(t.matmul(dy, v), 0) }),
        second: (ds, h) => [t.where(ds, h, dy)],
      },
      'fused_add__where',
    ],
    [
      'calls of several steps wait',
      { between: (s) => ({ kept: [t.softmax(gradient(s), -1)], ds: t.matmul(dy, v) }) },
      'fused_exp_mul',
    ],
  ])('makes one kernel of two where %s', (_, parts, name) => expect(fused(parts)).toEqual([name]));

  const many = (count: number): Parts => ({
    between: (s) => {
      const ds = Array.from({ length: count }).reduce<Tensor>((x) => t.softmax(x, -1), t.matmul(dy, v));
      return { kept: [gradient(s)], ds };
    },
  });
  it('looks at twelve calls', () => {
    expect(fused(many(8))).toHaveLength(1);
    expect(fused(many(9))).toHaveLength(0);
  });

  it.each<[string, Parts]>([
    ['the second needs what waits for the first', { between: (s) => ({ kept: [], ds: t.matmul(s, v) }) }],
    [
      'what waits is read by what the second reads',
      {
        between: (s) => {
          const w = gradient(s);
          return { kept: [w], ds: t.matmul(w, v) };
        },
      },
    ],
    [
      'what both read is written in between',
      {
        between: (s, h) => {
          t.fillInPlace(t.slice(h, 0, 0, 1), 1);
          return apart(s, h);
        },
      },
    ],
    [
      'what the second reads is written by what waits',
      {
        between: (s) => {
          const ds = t.matmul(dy, v);
          const w = gradient(s);
          t.copyInPlace(ds, w);
          return { kept: [w], ds };
        },
      },
    ],
    [
      'what waits reads what the second writes',
      {
        between: (s) => {
          const ds = t.matmul(dy, v);
          return { kept: [t.matmul(ds, s)], ds };
        },
        second: (ds, h) => {
          t.addInPlace(ds, h);
          return [t.softmax(ds, -1)];
        },
      },
    ],
    [
      'what waits has effects',
      { between: (s) => ({ kept: [tell(gradient(s), order)], ds: t.matmul(dy, v) }) },
    ],
    [
      'what could pass has effects',
      { between: (s) => ({ kept: [gradient(s)], ds: tell(t.matmul(dy, v), order) }) },
    ],
    ['it is read in another layout', { between: apart, second: (ds, h) => [t.mul(ds, t.transpose(h))] }],
    [
      'only a part of it is read',
      { between: apart, second: (ds, h) => [t.mul(t.slice(ds, 0, 0, 8), t.slice(h, 0, 0, 8))] },
    ],
    [
      'the second reads only a part of what the first does',
      { first: (h) => t.add(h, tensor()), between: apart },
    ],
    ['the second reads nothing of it', { between: apart, second: (ds) => [t.mul(ds, 2)] }],
    ['the first is not element-wise', { first: (h) => t.softmax(h, -1), between: apart }],
    ['the second is not element-wise', { between: apart, second: (_, h) => [t.softmax(h, -1)] }],
    ['the second is calculated in more bits', { between: apart, second: (_, h) => [t.cast(h, 'float64')] }],
  ])('leaves two calls alone where %s', (_, parts) => expect(fused(parts)).toEqual([]));

  it('leaves calls alone that share only a row', () => {
    const [row, column] = [t.zeros([16], { device }), t.zeros([16, 1], { device })];
    const parts: Parts = {
      first: () => t.add(row, column),
      between: apart,
      second: (ds) => t.apply(both, [ds, t.expand(row, [16, 16]), t.expand(column, [16, 16])], undefined),
    };
    expect(fused(parts)).toEqual([]);
  });

  it('needs no more memory: a result stays in place only where something ends', () => {
    const bytes = (graph: Graph) => fullestCall(partsOf(graph)).bytes;
    const { graph } = graphOf(program({ between: apart }));
    expect(bytes(readTogether(graph))).toBeLessThanOrEqual(bytes(graph));
    // If another call reads the second's input afterwards, the first one's result needs memory of its own.
    const longer: Parts = {
      between: (s) => {
        const w = gradient(s);
        const ds = t.matmul(dy, v);
        return { kept: [w, ds], ds };
      },
    };
    expect(fused(longer)).toEqual([]);
    // A larger peak before or after the two calls makes no difference.
    const large = () => t.scope(() => t.sum(t.softmax(t.zeros([256, 256], { device }), -1)));
    const before = () => [large(), ...program(longer)()];
    const after = () => [...program(longer)(), large()];
    for (const fn of [before, after])
      expect(namesAfter(device, readTogether, fn)).not.toContain('fused_exp_mul');
    const behind = () => [...program({ between: apart })(), large()];
    expect(namesAfter(device, readTogether, behind)).toContain('fused_exp_mul');
  });
});

describe.skipIf(hostCompilerVersion() === null)('on an emulated GPU', () => {
  const emulated = openEmulatedDevice();
  const random = (shape: readonly number[], seed: number) =>
    t.randn(shape, { device: emulated, seed, requiresGrad: true });

  /** A gated layer that is run again for its gradients; in low precision its two projections are one product. */
  function gated(dtype: 'float32' | AutocastDType) {
    // So large that what the first run makes is not kept for the second.
    const x = random([2048, 16], 1);
    const weights = [random([16, 32], 2), random([16, 32], 3), random([32, 16], 4)] as const;
    const layer = (y: Tensor) => {
      const [w1, w3, w2] = weights;
      return t.matmul(t.swiglu(t.matmul(y, w1), t.matmul(y, w3)), w2);
    };
    const run = () => t.checkpoint(layer, x);
    return () => {
      const y = dtype === 'float32' ? run() : t.autocast(dtype, run);
      t.sum(t.mul(y, y)).backward();
      return [x, ...weights].map((leaf) => {
        const gradient = t.mul(leaf.grad!.detach(), 2);
        leaf.grad!.dispose();
        leaf.grad = null;
        return gradient;
      });
    };
  }

  it.each(['float32', 'bfloat16', 'float16'] as const)('gives the same bits in %s', (dtype) => {
    const step = gated(dtype);
    const traced = graphOf(() => t.scope(step));
    const after = readTogether(mergeProducts(traced.graph));
    expect(opNames(after)).toContain('fused_swiglu_swigluBackward');
    // The gradient of x is a sum of two products, which merged ones round once.
    const [results, kept] = [traced.results, traced.kept].map((each) => each.slice(1)) as [
      Tensor[],
      number[],
    ];
    expectSameBits({ ...traced, results, kept }, after);
  });

  it.each(['float32', 'bfloat16', 'float16'] as const)(
    'gives what eager code gives run after run, where results lie over operands, in %s',
    (dtype) => {
      const step = gated(dtype);
      const values = (fn: typeof step) => t.scope(() => fn().map((gradient) => gradient.toFlatArray()));
      const [, ...expected] = values(step);
      const compiled = t.compile(step);
      for (let run = 0; run < 3; run++) expect(values(compiled).slice(1)).toEqual(expected);
      const names = compiled
        .explain()
        .at(-1)!
        .table.map(({ op }) => op);
      expect(names).toContain('fused_swiglu_swigluBackward');
    },
  );
});
