import {
  type Tensor,
  cast,
  copyInPlace,
  full,
  keep,
  matmul,
  mul,
  noGrad,
  reshape,
  slice,
  softmax,
  transpose,
  zeros,
} from '@roofline/tensor-core';
import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { mergeWeightGradients } from '../../tensor-core/src/compile/passes/merge-gradients.ts';
import { productFacts } from '../../tensor-core/src/compile/passes/product-facts.ts';
import { updateEarly } from '../../tensor-core/src/compile/passes/update-early.ts';
import { namesAfter } from '../../tensor-core/test/compile/passes/names-after.ts';
import { graphOf, opNames } from '../../tensor-core/test/compile/traced-graph.ts';
import { AdamW, type Optimizer, SGD } from '../src/index.ts';

// Each condition for the update to multiply its gradient, met and not, on a GPU that calculates nothing.
const device = openPlanningDevice();
const [k, m, n] = [8, 16, 8];

/** An intermediate, so that the gradient's operands are made in the function. */
const made = (shape: readonly number[], dtype: 'bfloat16' | 'float16' | 'float32' = 'bfloat16') =>
  mul(full(shape, 1, { device, dtype }), 2);
const captured = { dy: keep(made([k, m])), x: keep(made([k, n])) };

interface Step {
  readonly shape?: readonly number[];
  readonly weight?: Tensor;
  readonly optimizer?: (w: Tensor) => Optimizer<{ learningRate: number }>;
  readonly dy?: () => Tensor;
  readonly x?: () => Tensor;
  readonly gradient?: (dy: Tensor, x: Tensor) => Tensor;
  /** Between the product and the step; what it gives outlives the function. */
  readonly between?: (at: { w: Tensor; dy: Tensor; x: Tensor }) => readonly Tensor[];
  readonly after?: (at: { gradient: Tensor; dy: Tensor; x: Tensor }) => readonly Tensor[];
}

const product = (dy: Tensor, x: Tensor) => matmul(transpose(dy), x, { dtype: 'float32' });

/** Makes the optimizer's state, which would else be made in the function. */
function warmUp(optimizer: Optimizer<{ learningRate: number }>, weights: readonly Tensor[]): void {
  for (const w of weights) w.grad = keep(zeros(w.shape, { device }));
  optimizer.step();
  for (const w of weights) w.grad = null;
}

function stepOf({
  shape = [m, n],
  weight = keep(zeros(shape, { device })),
  optimizer = (w) => new AdamW([w]),
  dy: makeDy = () => made([k, m]),
  x: makeX = () => made([k, n]),
  gradient: multiply = product,
  between = () => [],
  after = () => [],
}: Step): () => readonly Tensor[] {
  const w = weight.requiresGrad_();
  const update = optimizer(w);
  warmUp(update, [w]);
  return () =>
    noGrad(() => {
      const [dy, x] = [makeDy(), makeX()];
      w.grad = keep(multiply(dy, x));
      const gradient = w.grad;
      const results = between({ w, dy, x });
      update.step();
      w.grad = null;
      return [...results, ...after({ gradient, dy, x })];
    });
}

const namesOf = (fn: () => readonly Tensor[], facts: Partial<typeof device.facts> = {}) =>
  namesAfter(device, (graph) => updateEarly(graph, { ...device.facts, ...facts }), fn)
    .filter((name) => !/_coefficients$|^mul$/.test(name))
    .join(' ');

describe('updates multiply', () => {
  it.each<[string, Step, string?]>([
    ['a gradient that nothing else reads', {}],
    ['one of float16', { dy: () => made([k, m], 'float16'), x: () => made([k, n], 'float16') }],
    ['one of an activation that stays', { after: ({ x }) => [x] }],
    [
      'one of a block of columns',
      {
        dy: () => slice(made([k, 3 * m]), 1, m, 2 * m),
      },
    ],
    ['one of operands that are there before', { dy: () => captured.dy, x: () => captured.x }],
    ['behind what reads the parameter', { between: ({ w }) => [softmax(w, -1)] }, 'softmax adamwByProducts'],
    ['before what does not', { between: ({ x }) => [softmax(x, -1)] }, 'adamwByProducts softmax'],
    [
      'into a part of a buffer',
      { weight: keep(reshape(slice(zeros([4 * m * n], { device }), 0, 4, 4 + m * n), [m, n])) },
    ],
    [
      'a gradient of a matrix that is stored by its inputs',
      { shape: [n, m], gradient: (dy, x) => matmul(transpose(x), dy, { dtype: 'float32' }) },
    ],
  ])('%s', (_, step, expected = 'adamwByProducts') => {
    expect(namesOf(stepOf(step))).toBe(expected);
  });
});

describe('updates leave', () => {
  it.each<[string, Step]>([
    ['a product of float32', { dy: () => made([k, m], 'float32'), x: () => made([k, n], 'float32') }],
    ['one that is rounded first', { gradient: (dy, x) => cast(matmul(transpose(dy), x), 'float32') }],
    ['a gradient that stays', { after: ({ gradient }) => [gradient] }],
    ['one that is read before the step', { between: ({ w }) => [softmax(w.grad!, -1)] }],
    ['one that is read after it', { after: ({ gradient }) => [softmax(gradient, -1)] }],
    [
      'one that is written once more',
      {
        between({ w }) {
          copyInPlace(w.grad!, softmax(w.grad!, -1));
          return [];
        },
      },
    ],
    [
      'a product whose X is written after it',
      {
        between({ x }) {
          copyInPlace(x, softmax(x, -1));
          return [x];
        },
      },
    ],
    [
      'a product whose dY is written after the step',
      {
        after({ dy }) {
          copyInPlace(dy, softmax(dy, -1));
          return [dy];
        },
      },
    ],
    ['a scaled product', { gradient: (dy, x) => matmul(transpose(dy), x, { dtype: 'float32', scale: 0.5 }) }],
    ['rows that TMA cannot read', { shape: [12, n], dy: () => made([k, 12]) }],
    ['columns that make no vectors', { shape: [m, 6], x: () => slice(made([k, 8]), 1, 0, 6) }],
    ['a dY that begins between vectors', { dy: () => slice(made([k, 3 * m]), 1, 4, m + 4) }],
    [
      'a parameter that begins between vectors',
      { weight: keep(reshape(slice(zeros([4 * m * n], { device }), 0, 2, 2 + m * n), [m, n])) },
    ],
    ['an optimizer that cannot', { optimizer: (w) => new SGD([w]) }],
    [
      'rows regrouped',
      { shape: [m / 2, 2 * n], gradient: (dy, x) => reshape(product(dy, x), [m / 2, 2 * n]) },
    ],
    ['a product as a vector', { shape: [m * n], gradient: (dy, x) => reshape(product(dy, x), [m * n]) }],
    [
      'what begins between rows',
      {
        shape: [m - 1, n],
        gradient: (dy, x) =>
          reshape(slice(reshape(product(dy, x), [m * n]), 0, 4, 4 + (m - 1) * n), [m - 1, n]),
      },
    ],
    ['a product of rows', { gradient: (dy, x) => matmul(reshape(dy, [m, k]), x, { dtype: 'float32' }) }],
  ])('%s', (_, step) => {
    expect(namesOf(stepOf(step))).toContain('matmul');
    expect(namesOf(stepOf(step))).not.toContain('ByProducts');
  });

  it.each([
    ['dY', k * m * 2],
    ['X', k * n * 2],
    ['the parameter', m * n * 4],
  ])('arguments, whose memory may begin between vectors: %s', (_, byteLength) => {
    const { graph } = graphOf(stepOf({ dy: () => captured.dy, x: () => captured.x }));
    const storages = graph.storages.map((storage) =>
      storage.byteLength === byteLength && storage.source.kind === 'captured'
        ? { ...storage, source: { kind: 'argument' as const, index: 0 } }
        : storage,
    );
    expect(storages).not.toEqual(graph.storages);
    expect(opNames(updateEarly({ ...graph, storages }, device.facts)).join(' ')).toBe('matmul adamw');
    expect(opNames(updateEarly(graph, device.facts)).join(' ')).toBe('adamw_coefficients adamwByProducts');
  });

  it.each([80, 89, 100, 120])('all to cuBLAS on a GPU of compute capability %i', (computeCapability) => {
    expect(namesOf(stepOf({}), { computeCapability })).toBe('matmul adamw');
  });
});

describe('several weights', () => {
  const weights = (count: number) =>
    Array.from({ length: count }, () => keep(zeros([m, n], { device })).requiresGrad_());
  const steps = (count: number, alter: (gradients: readonly Tensor[]) => void = () => {}) => {
    const all = weights(count);
    const optimizer = new AdamW(all);
    warmUp(optimizer, all);
    return () =>
      noGrad(() => {
        const [dy, x] = [made([k, count * m]), made([k, n])];
        const results = all.map((w, i) => {
          w.grad = keep(product(slice(dy, 1, i * m, (i + 1) * m), x));
          return w.grad;
        });
        alter(results);
        optimizer.step();
        for (const w of all) w.grad = null;
        return [];
      });
  };
  const merged = (fn: () => readonly Tensor[]) =>
    namesAfter(device, (graph) => updateEarly(mergeWeightGradients(graph), device.facts), fn)
      .filter((name) => !/_coefficients$|^mul$/.test(name))
      .join(' ');

  it('share a launch', () => {
    expect(namesOf(steps(3))).toBe('adamwByProducts');
  });

  it('share a launch up to twelve', () => {
    expect(namesOf(steps(13))).toBe('adamwByProducts adamwByProducts');
  });

  it('need no further ones once there are tiles enough', () => {
    expect(namesOf(steps(3), { multiprocessors: 0 })).toBe('adamwByProducts adamwByProducts adamwByProducts');
  });

  /** Each with operands of its own, made one after the other. */
  const apart = (dtypeOf: (i: number) => 'bfloat16' | 'float16') => {
    const all = weights(3);
    const optimizer = new AdamW(all);
    warmUp(optimizer, all);
    return () =>
      noGrad(() => {
        all.forEach((w, i) => {
          w.grad = keep(product(made([k, m], dtypeOf(i)), made([k, n], dtypeOf(i))));
        });
        optimizer.step();
        for (const w of all) w.grad = null;
        return [];
      });
  };

  it('share a launch once the operands of the last are made', () => {
    expect(namesOf(apart(() => 'bfloat16'))).toBe('adamwByProducts');
  });

  it('of two dtypes do not share a launch', () => {
    const names = namesOf(apart((i) => (i === 1 ? 'float16' : 'bfloat16'))).split(' ');
    expect(names.filter((name) => name === 'adamwByProducts')).toHaveLength(3);
    expect(names).not.toContain('matmul');
  });

  it('take a merged product apart', () => {
    expect(merged(steps(3))).toBe('adamwByProducts');
  });

  it.each([1, 3])('of %i are counted, and not as merged', (count) => {
    const { graph } = graphOf(steps(count));
    const facts = productFacts(graph, updateEarly(mergeWeightGradients(graph), device.facts));
    expect(facts).toEqual({
      ...{ accumulatedProducts: 0, mergedProducts: 0, operandBytesSaved: 0, multipliedGradients: count },
    });
  });

  it('leave a merged product whole where one gradient is read', () => {
    const kept: Tensor[] = [];
    const fn = steps(3, (gradients) => kept.push(softmax(gradients[1]!, -1)));
    expect(merged(() => [...fn(), ...kept.splice(0)])).toContain('matmul');
  });
});
