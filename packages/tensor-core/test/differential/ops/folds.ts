import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { type OpEntry, python } from '../programs/program.ts';
import { drawDType, drawShape, drawTensor } from '../programs/tensor-input.ts';
import { drawDimension, tensorOf } from './operands.ts';
import { reduction } from './reductions.ts';

const argExtremum = (name: 'argmax' | 'argmin'): OpEntry => ({
  name,
  rule: 'exact',
  draw: (random) => {
    const x = drawTensor(random);
    const dims = random.chance(0.3) ? undefined : drawDimension(random, x.shape.length);
    const keepDims = random.chance(0.3);
    return {
      operands: [x],
      ours: ([x]) => t[name](tensorOf(x), { dims, keepDims }),
      torch: ([x]) => `torch.${name}(ordered(${x}), ${python(dims)}, ${python(keepDims)})`,
    };
  },
});

const cumsum: OpEntry = {
  name: 'cumsum',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    // One line after another, so fewer elements than other folds.
    const shape = random.chance(0.01) ? [random.integer(20_000, 100_000)] : drawShape(random);
    const x = drawTensor(random, { shape });
    const dimension = drawDimension(random, x.shape.length);
    return {
      operands: [x],
      ours: ([x]) => t.cumsum(tensorOf(x), dimension),
      torch: ([x]) => `torch.cumsum(${x}, ${dimension})`,
      terms: Math.max(1, x.shape.at(dimension) ?? 1),
    };
  },
};

/** PyTorch may take either of equal elements: where there are any, only the values are compared. */
const topk: OpEntry = {
  name: 'topk',
  rule: 'exact',
  draw: (random) => {
    const distinct = random.chance(0.5);
    const dtype = distinct ? random.pick(['float32', 'float64'] as const) : drawDType(random);
    const values = distinct ? 'ordinary' : 'any';
    const x = drawTensor(random, {
      dtype,
      shape: drawShape(random, 1),
      values,
      requiresGrad: distinct,
      views: !distinct,
    });
    const [dimension, largest] = [drawDimension(random, x.shape.length), random.chance(0.5)];
    const count = random.integer(0, (x.shape.at(dimension) ?? 1) + (random.chance(0.05) ? 1 : 0));
    return {
      operands: [x],
      ours: ([x]) => {
        const { values, indices } = t.topk(tensorOf(x), count, { dimension, largest });
        if (distinct) return [values, indices];
        indices.dispose();
        return values;
      },
      torch: ([x]) => `torch.topk(${x}, ${count}, ${dimension}, ${python(largest)})${distinct ? '' : '[0]'}`,
    };
  },
};

type Variance = (x: Tensor, options: t.VarianceOptions) => Tensor;

/** With the correction of a sample, or none. */
const spread = (name: string, ours: Variance, torch: string): OpEntry => {
  const entryOf = (correction: 0 | 1) =>
    reduction(
      name,
      (x, options) => ours(x, { ...options, correction }),
      `partial(${torch}, unbiased=${python(correction === 1)})`,
      'accumulated',
      {
        values: (random) => random.pick(['powers', 'powers', 'offset']),
        listsDims: true,
        exactAddends: true,
      },
    );
  const [population, sample] = [entryOf(0), entryOf(1)];
  return { ...sample, draw: (random) => random.pick([population, sample, sample]).draw(random) };
};

export const foldOps: readonly OpEntry[] = [
  reduction('min', t.min, 'torch.amin', 'exact'),
  reduction('any', t.any, 'any_of', 'exact'),
  reduction('all', t.all, 'all_of', 'exact'),
  argExtremum('argmax'),
  argExtremum('argmin'),
  cumsum,
  topk,
  spread('variance', t.variance, 'var'),
  spread('var', t.var, 'var'),
  spread('std', t.std, 'std'),
];
