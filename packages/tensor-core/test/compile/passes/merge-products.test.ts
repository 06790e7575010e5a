import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Device, Tensor } from '../../../src/index.ts';
import { accumulateProducts } from '../../../src/compile/passes/accumulate-products.ts';
import { mergeProducts } from '../../../src/compile/passes/merge-products.ts';
import { optimize } from '../../../src/compile/passes/optimize.ts';
import { productFacts } from '../../../src/compile/passes/product-facts.ts';
import { Interpreter } from '../../../src/compile/executable/interpreter.ts';
import { PerRunAttributes } from '../../../src/compile/executable/per-run-attributes.ts';
import type { Call, Graph } from '../../../src/compile/graph/graph.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { type TracedGraph, opNames, graphOf } from '../traced-graph.ts';

const low = 'bfloat16';

/** An activation, weights of several heights, and the gradients of what they make. */
function operands(device: Device) {
  const generator = new t.Generator(5);
  const random = (shape: number[]) => t.randn(shape, { device, generator });
  return {
    x: t.cast(random([2, 3, 16]), low),
    weights: [16, 8, 24].map((n) => random([n, 16])),
    gradients: [16, 8, 24].map((n) => random([2, 3, n])),
  };
}

const lowered = (w: Tensor) => t.cast(w, low);
const merged = (fn: () => readonly Tensor[]) => {
  const { graph } = graphOf(fn);
  const { storages } = graph;
  const kept = new Set([...graph.kept].filter((number) => storages[number]!.source.kind === 'made'));
  return mergeProducts(accumulateProducts({ ...graph, kept }));
};
const products = ({ calls }: Graph): Call[] => calls.filter(({ op }) => /mm|matmul/.test(op.name));
const shapes = (graph: Graph) =>
  products(graph).map(({ inputs, outputs }) => [...inputs.slice(0, 2), ...outputs].map(({ shape }) => shape));

/** The gradients of x and of the weights, as a backward pass makes them, and what is read of the projections. */
function layer({ x, weights, gradients }: ReturnType<typeof operands>): Tensor[] {
  const low16 = weights.map((w) => lowered(w));
  const read = low16.map((w, i) => t.mul(t.linear(x, w), i + 1));
  const rows = t.reshape(x, [6, 16]);
  const upstream = gradients.map((g) => t.cast(t.mul(g, 2), low));
  const byWeight = upstream.map((g) =>
    t.matmul(t.transpose(t.reshape(g, [6, g.shape.at(-1)!])), rows, { dtype: 'float32' }),
  );
  const sum = t.matmul(upstream[2]!, low16[2]!);
  t.addInPlace(sum, t.matmul(upstream[0]!, low16[0]!));
  t.addInPlace(sum, t.matmul(upstream[1]!, low16[1]!));
  return [...read, ...byWeight.map((g) => t.mul(g, 3)), sum];
}

describe('mergeProducts', () => {
  const cpu = operands(t.device('cpu'));
  const { x, weights, gradients } = cpu;
  const [first, second] = weights as [Tensor, Tensor];

  it('makes one product of projections, of the sum of their gradients, and of their weights’ gradients', () => {
    const graph = merged(() => layer(cpu));
    expect(shapes(graph)).toEqual([
      [
        [2, 3, 16],
        [48, 16],
        [2, 3, 48],
      ],
      [
        [48, 6],
        [6, 16],
        [48, 16],
      ],
      [
        [2, 3, 48],
        [48, 16],
        [2, 3, 16],
      ],
    ]);
    expect(opNames(graph).filter((name) => name === 'cast')).toHaveLength(6);
    expect(products(graph).map(({ members }) => members!.map(({ op }) => op.name).join(' '))).toEqual([
      'matmul matmul matmul',
      'matmul matmul matmul',
      'matmul matmul add_ matmul add_',
    ]);
    const before = accumulateProducts(graphOf(() => layer(cpu)).graph);
    expect(productFacts(before, graph)).toEqual({
      accumulatedProducts: 0,
      mergedProducts: 6,
      operandBytesSaved: 2 * 2 * 2 * 6 * 16,
      multipliedGradients: 0,
    });
  });

  it('lets casts write their parts of the joint weights', () => {
    const graph = merged(() => [t.neg(t.linear(x, lowered(first))), t.neg(t.linear(x, lowered(second)))]);
    expect(opNames(graph)).toEqual(['cast', 'cast', 'matmul', 'neg', 'neg']);
    const [one, other, { inputs }] = graph.calls as [Call, Call, Call];
    expect([one, other].map(({ outputs }) => outputs[0]!.storage)).toEqual(Array(2).fill(inputs[1]!.storage));
    expect([one, other].map(({ outputs }) => outputs[0]!.offset)).toEqual([0, 256]);
  });

  it('merges again what is already in a joint storage', () => {
    const graph = merged(() => {
      const [a, b] = [lowered(first), lowered(second)];
      const use = (y: Tensor) => [t.neg(t.linear(y, a)), t.neg(t.linear(y, b))];
      return [...use(x), ...use(t.mul(x, 2))];
    });
    expect(products(graph)).toHaveLength(2);
  });

  it('makes a separate product for what is needed much longer, with its weights after the others', () => {
    const graph = merged(() => {
      const [a, b, c] = weights.map((w) => t.linear(x, lowered(w)));
      const soon = [t.neg(a!), t.neg(c!)];
      let later = soon[0]!;
      for (let i = 0; i < 40; i++) later = t.sin(later);
      return [...soon, later, t.neg(b!)];
    });
    expect(shapes(graph)).toEqual([
      [
        [2, 3, 16],
        [40, 16],
        [2, 3, 40],
      ],
      [
        [2, 3, 16],
        [8, 16],
        [2, 3, 8],
      ],
    ]);
    const [together, alone] = products(graph).map(({ inputs }) => inputs[1]!);
    expect(alone!.storage).toBe(together!.storage);
    expect(alone!.offset).toBe(40 * 16);
  });

  it("leaves products separate whose weights have another's between them", () => {
    const graph = merged(() => {
      const low16 = weights.map((w) => lowered(w));
      const together = low16.map((w) => t.neg(t.linear(x, w)));
      const y = t.mul(x, 2);
      const [a, b, c] = low16.map((w) => t.linear(y, w));
      let later = t.add(t.sum(t.neg(a!)), t.sum(t.neg(c!)));
      for (let i = 0; i < 40; i++) later = t.sin(later);
      return [...together, later, t.neg(b!)];
    });
    expect(products(graph)).toHaveLength(4);
  });

  it('merges those that can be merged, and leaves the others', () => {
    const graph = merged(() => {
      const [a, b, c] = weights.map((w) => t.linear(x, lowered(w)));
      return [t.neg(a!), b!, t.neg(c!)];
    });
    expect(shapes(graph)).toEqual([
      [
        [2, 3, 16],
        [40, 16],
        [2, 3, 40],
      ],
      [
        [2, 3, 16],
        [8, 16],
        [2, 3, 8],
      ],
    ]);
  });

  it.each([
    [
      'other activations',
      () => [t.neg(t.linear(x, lowered(first))), t.neg(t.linear(t.neg(x), lowered(second)))],
    ],
    ['results that are kept', () => [t.linear(x, lowered(first)), t.linear(x, lowered(second))]],
    ['weights that are given', () => [lowGiven[0]!, lowGiven[1]!].map((w) => t.neg(t.linear(x, w)))],
    [
      'weights that are written again',
      () =>
        [first, second].map((w) => {
          const own = lowered(w);
          const y = t.neg(t.linear(x, own));
          t.fillInPlace(own, 0);
          return y;
        }),
    ],
    [
      'an activation that is written in between',
      () => {
        const own = t.mul(x, 1);
        const y = t.neg(t.linear(own, lowered(first)));
        t.fillInPlace(own, 0);
        return [y, t.neg(t.linear(own, lowered(second)))];
      },
    ],
    [
      'a weight that is written before its cast',
      () => {
        const own = t.mul(second, 1);
        const y = t.neg(t.linear(x, lowered(first)));
        t.fillInPlace(own, 0);
        return [y, t.neg(t.linear(x, lowered(own)))];
      },
    ],
    [
      'results that are written in place',
      () =>
        [first, second].map((w) => {
          const y = t.linear(x, lowered(w));
          t.addInPlace(y, y);
          return t.neg(y);
        }),
    ],
    ['results that are read as dense', () => [first, second].map((w) => t.sum(t.linear(x, lowered(w))))],
    [
      'views that run over the ends of rows',
      () => [first, second].map((w) => t.neg(t.reshape(t.linear(x, lowered(w)), [-1]))),
    ],
    ['odd widths', () => [first, second].map((w) => t.neg(t.linear(x, t.cast(t.slice(w, 0, 0, 5), low))))],
    ['float32', () => [first, second].map((w) => t.neg(t.linear(t.cast(x, 'float32'), t.mul(w, 2))))],
    ['other scales', () => [1, 2].map((scale) => t.neg(t.matmul(x, t.transpose(lowered(first)), { scale })))],
  ] as [string, () => Tensor[]][])('leaves alone %s', (_, fn) => {
    const before = graphOf(fn).graph;
    expect(products(merged(fn))).toHaveLength(products(before).length);
  });

  const lowGiven = [lowered(first), lowered(second)];

  it('keeps gradients separate that are kept, and those whose sum is read half-way', () => {
    const rows = t.reshape(x, [6, 16]);
    const kept = merged(() => {
      const upstream = gradients.map((g) => t.cast(t.mul(g, 2), low));
      return upstream.map((g) => t.matmul(t.transpose(t.reshape(g, [6, g.shape.at(-1)!])), rows));
    });
    expect(products(kept)).toHaveLength(3);
    const graph = merged(() => {
      const low16 = weights.map((w) => lowered(w));
      const read = low16.map((w) => t.neg(t.linear(x, w)));
      const upstream = gradients.map((g) => t.cast(t.mul(g, 2), low));
      const sum = t.matmul(upstream[0]!, low16[0]!);
      const half = t.neg(sum);
      t.addInPlace(sum, t.matmul(upstream[1]!, low16[1]!));
      return [...read, half, sum];
    });
    expect(opNames(graph).filter((name) => /mm|matmul/.test(name))).toEqual(['matmul', 'matmul', 'addmm_']);
  });

  it('adds what cannot be merged to what can', () => {
    const graph = merged(() => {
      const low16 = weights.map((w) => lowered(w));
      const read = low16.map((w) => t.neg(t.linear(x, w)));
      const upstream = gradients.map((g) => t.cast(t.mul(g, 2), low));
      const sum = t.matmul(upstream[2]!, low16[2]!);
      t.addInPlace(sum, t.matmul(upstream[0]!, low16[0]!));
      t.addInPlace(sum, t.matmul(upstream[1]!, low16[1]!));
      // As dense as it was, for a reader of that.
      return [...read, sum, t.sum(upstream[2]!)];
    });
    const sums = products(graph).slice(1);
    expect(sums.map(({ op }) => op.name)).toEqual(['matmul', 'addmm_']);
    expect(sums.map(({ inputs }) => inputs[0]!.shape)).toEqual([
      [2, 3, 24],
      [2, 3, 24],
    ]);
  });
});

/** The results of `program`, another form of the traced graph. */
function resultsOf({ graph: { storages }, results, kept, live }: TracedGraph, graph: Graph): number[][] {
  const bindings = new Map(
    storages.flatMap(({ source }, number) =>
      'storage' in source ? [[number, { storage: source.storage, byteOffset: 0 }] as const] : [],
    ),
  );
  const made = new Interpreter(graph).run(bindings, new PerRunAttributes(live));
  const values = results.map(({ dtype, shape, strides, offset }, i) => {
    const storage = made.get(kept[i]!)!.retain();
    return new t.Tensor(storage, dtype, shape, strides, offset).toFlatArray() as number[];
  });
  for (const storage of made.values()) storage.release();
  return values;
}

describe.skipIf(hostCompilerVersion() === null)('merged products on an emulated GPU', () => {
  const device = openEmulatedDevice();

  it('give what separate ones give, except for a sum that is rounded once', () => {
    const gpu = operands(device);
    const traced = graphOf(() => layer(gpu));
    const values = resultsOf(traced, optimize(traced.graph, device.facts));
    const sum = values.pop()!;
    // The emulated products add exactly, so that no order is visible.
    expect(values).toEqual(traced.results.slice(0, -1).map((result) => result.toFlatArray()));
    const upstream = gpu.gradients.map((g) => lowered(t.mul(g, 2)));
    const exact = gpu.weights
      .map((w, i) => t.matmul(upstream[i]!, lowered(w), { dtype: 'float32' }))
      .reduce((a, b) => t.add(a, b));
    expect(sum).toEqual(t.cast(exact, low).toFlatArray());
  });

  it('write and read parts of a joint storage by one kernel', () => {
    const { x, weights } = operands(device);
    const [up, gate] = [weights[0]!, t.neg(weights[0]!)];
    const traced = graphOf(() => [t.swiglu(t.linear(x, lowered(up)), t.linear(x, lowered(gate)))]);
    const optimized = optimize(traced.graph, device.facts);
    expect(products(optimized)).toHaveLength(1);
    expect(resultsOf(traced, optimized)[0]).toEqual(traced.results[0]!.toFlatArray());
  });

  it('stay as they are where another product is added to one of them', () => {
    // Sums of small integers are exact, however often they are rounded.
    const whole = (rows: number, step: number) =>
      t.fromTypedArray(
        Float32Array.from({ length: rows * 16 }, (_, i) => ((i * step) % 5) - 2),
        [rows, 16],
        { device },
      );
    const x = lowered(whole(6, 3));
    const weights = [16, 16, 24].map((rows, i) => whole(rows, 2 + i));
    const traced = graphOf(() => {
      const [sum, added, other] = weights.map((w) => t.linear(x, lowered(w)));
      return [t.neg(sum!), t.neg(other!), t.add(sum!, added!)];
    });
    const optimized = optimize(traced.graph, device.facts);
    expect(opNames(optimized)).toContain('addmm');
    expect(resultsOf(traced, optimized)).toEqual(traced.results.map((result) => result.toFlatArray()));
  });
});
