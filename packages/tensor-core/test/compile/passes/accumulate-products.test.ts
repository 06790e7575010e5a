import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Device, DType, Tensor } from '../../../src/index.ts';
import { accumulateProducts } from '../../../src/compile/passes/accumulate-products.ts';
import { Interpreter } from '../../../src/compile/executable/interpreter.ts';
import { PerRunAttributes } from '../../../src/compile/executable/per-run-attributes.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { type TracedGraph, opNames, graphOf } from '../traced-graph.ts';

const low: DType = 'bfloat16';

function operands(device: Device, dtype: DType = low) {
  const generator = new t.Generator(3);
  const random = (shape: number[], to: DType = dtype) => t.cast(t.randn(shape, { device, generator }), to);
  return {
    x: random([2, 3, 8], 'float32'),
    h: random([2, 3, 4]),
    w: random([8, 4]),
    g: random([2, 3, 5]),
    v: random([5, 8]),
    other: random([2, 3, 8]),
  };
}

/** The results of `program`, another form of the traced graph. */
function resultsOf({ graph: { storages }, results, kept, live }: TracedGraph, graph: Graph): number[][] {
  const bindings = new Map(
    storages.flatMap(({ source }, number) =>
      'storage' in source ? [[number, { storage: source.storage, byteOffset: 0 }] as const] : [],
    ),
  );
  const made = new Interpreter(graph).run(bindings, new PerRunAttributes(live));
  const values = results.map(({ dtype, shape, strides, offset, storage: given }, i) => {
    const storage = (made.get(kept[i]!) ?? given).retain();
    return new t.Tensor(storage, dtype, shape, strides, offset).toFlatArray() as number[];
  });
  for (const storage of made.values()) storage.release();
  return values;
}

const namesAfter = (fn: () => readonly Tensor[]) => {
  const { graph } = graphOf(fn);
  return opNames(accumulateProducts({ ...graph, kept: new Set([...graph.kept].filter(isMade(graph))) }));
};

const isMade =
  ({ storages }: Graph) =>
  (number: number) =>
    storages[number]!.source.kind === 'made';

describe('accumulateProducts', () => {
  const { x, h, w, g, v, other } = operands(t.device('cpu'));
  const product = () => t.linear(h, w);

  it('makes one call of a product and what it is added to, from either side, widened or not', () => {
    expect(namesAfter(() => [t.add(x, product())])).toEqual(['addmm']);
    expect(namesAfter(() => [t.add(product(), x)])).toEqual(['addmm']);
    const { graph } = graphOf(() => [t.add(x, t.cast(product(), 'float32'))]);
    const [call] = accumulateProducts(graph).calls;
    expect(call!.members!.map(({ op }) => op.name)).toEqual(['matmul', 'cast', 'add']);
    expect(namesAfter(() => [t.add(x, t.cast(product(), 'float32'))])).toEqual(['addmm']);
    expect(namesAfter(() => [t.add(other, product())])).toEqual(['addmm']);
    expect(namesAfter(() => [t.add(x, t.matmul(h, t.transpose(w), { dtype: 'float32', scale: 2 }))])).toEqual(
      ['addmm'],
    );
  });

  it('adds the gradients of something used several times into the first', () => {
    const names = namesAfter(() => {
      const sum = product();
      t.addInPlace(sum, t.matmul(g, v));
      t.addInPlace(sum, t.matmul(t.neg(g), v));
      return [sum];
    });
    expect(names).toEqual(['matmul', 'addmm_', 'neg', 'addmm_']);
  });

  it('adds into captured tensors', () => {
    const given = t.mul(x, 1);
    const into = () => {
      t.addInPlace(given, product());
      return [];
    };
    expect(namesAfter(into)).toEqual(['addmm_']);
  });

  it('leaves products alone that another call sees', () => {
    const kept = () => {
      const p = product();
      return [t.add(x, p), p];
    };
    expect(namesAfter(kept)).toEqual(['matmul', 'add']);
    const readTwice = () => {
      const p = product();
      return [t.add(x, p), t.relu(p)];
    };
    expect(namesAfter(readTwice)).toEqual(['matmul', 'add', 'relu']);
    expect(
      namesAfter(() => {
        const p = product();
        return [t.add(p, p)];
      }),
    ).toEqual(['matmul', 'add']);
    const written = () => {
      const p = product();
      t.fillInPlace(t.slice(p, 0, 0, 1), 0);
      return [t.add(x, p)];
    };
    expect(namesAfter(written)).toEqual(['matmul', 'fill_', 'add']);
  });

  it('leaves alone what one call cannot do: other shapes, layouts and dtypes, no terms, nothing', () => {
    const row = t.ones([8]);
    expect(namesAfter(() => [t.add(row, product())])).toEqual(['matmul', 'add']);
    const turned = t.transpose(t.cast(t.ones([2, 8, 3]), low), 1, 2);
    expect(namesAfter(() => [t.add(turned, product())])).toEqual(['matmul', 'add']);
    const half = t.cast(other, 'float16');
    const intoHalf = () => {
      t.addInPlace(half, product());
      return [];
    };
    expect(namesAfter(intoHalf)).toEqual(['matmul', 'add_']);
    const [wide, wideWeight] = [t.cast(h, 'float32'), t.cast(w, 'float32')];
    expect(namesAfter(() => [t.add(x, t.linear(wide, wideWeight))])).toEqual(['matmul', 'add']);
    expect(namesAfter(() => [t.sub(x, product())])).toEqual(['matmul', 'sub']);
    const [noTerms, noTermsEither] = [t.zeros([3, 0], { dtype: low }), t.zeros([0, 8], { dtype: low })];
    expect(namesAfter(() => [t.add(t.ones([3, 8]), t.matmul(noTerms, noTermsEither))])).toContain('matmul');
    const nothing = t.zeros([0, 4], { dtype: low });
    expect(namesAfter(() => [t.add(t.zeros([0, 8]), t.linear(nothing, w))])).toContain('matmul');
  });

  it('does not compute after a write to an operand, nor into one', () => {
    const overwritten = () => {
      const operand = t.mul(h, 1);
      const p = t.linear(operand, w);
      t.fillInPlace(operand, 0);
      return [t.add(x, p)];
    };
    expect(namesAfter(overwritten)).toEqual(['mul', 'matmul', 'fill_', 'add']);
    const intoItself = () => {
      const square = t.mul(t.reshape(t.slice(other, 0, 0, 1), [3, 8]), 1);
      t.addInPlace(square, t.matmul(square, t.cast(t.ones([8, 8]), low)));
      return [square];
    };
    expect(namesAfter(intoItself).slice(-2)).toEqual(['matmul', 'add_']);
  });
});

const places = [['the CPU', () => t.device('cpu')]] as [string, () => Device][];
if (hostCompilerVersion() !== null) places.push(['an emulated GPU', () => openEmulatedDevice()]);

describe.each(places)('accumulated products on %s', (_, open) => {
  const { x, h, w, g, v, other } = operands(open());
  const unrounded = (a: Tensor, b: Tensor) => t.matmul(a, b, { dtype: 'float32' });

  it.each([
    ['float32', () => t.add(x, t.linear(h, w)), () => t.add(x, unrounded(h, t.transpose(w)))],
    [low, () => t.add(other, t.linear(h, w)), () => t.cast(t.add(other, unrounded(h, t.transpose(w))), low)],
  ] as [string, () => Tensor, () => Tensor][])('round once to %s', (_, fn, expected) => {
    const traced = graphOf(() => [fn()]);
    const accumulated = accumulateProducts(traced.graph);
    expect(opNames(accumulated)).toEqual(['addmm']);
    const [values] = resultsOf(traced, accumulated);
    const exact = expected().toFlatArray() as number[];
    // Sums of a few terms, in another order.
    values!.forEach((value, i) =>
      expect(Math.abs(value - exact[i]!)).toBeLessThan(2 ** -20 * (1 + Math.abs(value))),
    );
    expect(values).not.toEqual(traced.results[0]!.toFlatArray());
  });

  it('add up in place, and at a scale', () => {
    const traced = graphOf(() => {
      const sum = t.mul(x, 1);
      t.addInPlace(sum, t.matmul(g, v, { dtype: 'float32', scale: 0.5 }));
      t.addInPlace(sum, t.linear(h, w));
      return [sum, t.neg(sum)];
    });
    const accumulated = accumulateProducts(traced.graph);
    expect(opNames(accumulated)).toEqual(['mul', 'addmm_', 'addmm_', 'neg']);
    const [sum, negated] = resultsOf(traced, accumulated);
    const exact = t.add(t.add(x, t.mul(unrounded(g, v), 0.5)), unrounded(h, t.transpose(w)));
    exact.toFlatArray().forEach((value, i) => expect(sum![i]).toBeCloseTo(value as number, 5));
    expect(negated).toEqual(sum!.map((value) => -value));
  });
});
