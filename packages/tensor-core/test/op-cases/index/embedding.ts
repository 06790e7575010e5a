import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Shape } from '../../../src/index.ts';
import { embedding } from '../../../src/ops/index/embedding.ts';
import { uniformStream } from '../../../../../tooling/uniform-stream.ts';
import { sample, tensorOf } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
  outcomeOf,
  rowsOf,
} from '../support/vector-jacobian.ts';

const embeddingReference =
  (dimension: number) =>
  (weight: number[], ids: number[]): Reference => {
    const rows = rowsOf(weight, dimension);
    return {
      y: ids.flatMap((id) => rows[id]!),
      gradients: (g) => {
        const dweight = weight.map(() => 0);
        rowsOf(g, dimension).forEach((row, n) =>
          row.forEach((value, i) => (dweight[ids[n]! * dimension + i]! += value)),
        );
        return [dweight, null];
      },
    };
  };

/** embedding on one device. */
export function describeEmbedding(open: OpenDevice, dtypes = floatingPointDTypes): void {
  it.each(['int32', 'int64', 'bool'] as const)('takes rows of %s', (dtype) => {
    t.scope(() => {
      const table = t.tensor([[0, 1, 1], [1, 0, 0]], { dtype, device: open() }); // prettier-ignore
      const y = embedding(table, tensorOf([1, 0], [2], 'int64', open()));
      expect([y.dtype, y.toFlatArray()]).toEqual([dtype, [1, 0, 0, 0, 1, 1]]);
    });
  });

  const idsOf = (shape: Shape, vocabulary: number, dtype: 'int32' | 'int64') => {
    const next = uniformStream(12);
    // The square makes small ids frequent, so that many rows of the gradient meet.
    const values = Array.from({ length: t.sizeOf(shape) }, () => Math.floor(next() ** 2 * vocabulary));
    return tensorOf(values, shape, dtype, open());
  };
  const cases = [
    { vocabulary: 3, dimension: 1, ids: [5] },
    { vocabulary: 11, dimension: 6, ids: [2, 3] },
    { vocabulary: 40, dimension: 33, ids: [70] },
    { vocabulary: 50, dimension: 64, ids: [3, 1000] },
    { vocabulary: 7, dimension: 2560, ids: [40] },
    { vocabulary: 2, dimension: 9000, ids: [3] },
  ];

  it.each(dtypes.flatMap((dtype) => (['int32', 'int64'] as const).map((index) => [dtype, index] as const)))(
    'agrees with float64 for %s rows and %s ids, and so does its gradient',
    (dtype, index) => {
      for (const { vocabulary, dimension, ids } of cases) {
        t.scope(() => {
          const weight = sample([vocabulary, dimension], { dtype, seed: 13 }, open());
          const inputs = [weight, idsOf(ids, vocabulary, index)];
          expect(embedding(inputs[0]!, inputs[1]!).shape).toEqual([...ids, dimension]);
          expectReference((w, n) => embedding(w!, n!), inputs, embeddingReference(dimension), { forward: 0 });
        });
      }
    },
  );

  // Ids of one, two and three digits of eight bits; more ids than a block has threads; ids that fill a warp's share.
  it.each([
    { vocabulary: 1, count: 40 },
    { vocabulary: 255, count: 1 },
    { vocabulary: 256, count: 1024 },
    { vocabulary: 257, count: 1025 },
    { vocabulary: 66_000, count: 5000 },
  ])('adds $count rows into a table of $vocabulary', ({ vocabulary, count }) => {
    t.scope(() => {
      const ids = idsOf([count], vocabulary, 'int32');
      // The last row too, whose id has the most digits.
      const all = tensorOf([...ids.toFlatArray(), vocabulary - 1], [count + 1], 'int32', open());
      const weight = t.zeros([vocabulary, 2], { device: open() }).requiresGrad_();
      // Integers add up exactly, in any order.
      const g = tensorOf(
        Array.from({ length: 2 * (count + 1) }, (_, i) => (i * i) % 101),
        [count + 1, 2],
        'float32',
        open(),
      );
      embedding(weight, all).backward(g);
      const expected = new Array<number>(2 * vocabulary).fill(0);
      all.toFlatArray().forEach((id, n) => {
        for (const i of [0, 1]) expected[2 * id + i]! += (2 * n + i) ** 2 % 101;
      });
      expect(weight.grad!.toFlatArray()).toEqual(expected);
    });
  });

  it('adds the rows of an id in ascending order of positions, in float32 for low precision', () => {
    t.scope(() => {
      const gradientOf = (rows: readonly number[], dtype: 'float32' | 'bfloat16') => {
        const weight = t.zeros([3, 1], { dtype, device: open() }).requiresGrad_();
        const ids = tensorOf(
          rows.map(() => 1),
          [rows.length],
          'int64',
          open(),
        );
        embedding(weight, ids).backward(tensorOf(rows, [rows.length, 1], dtype, open()));
        return weight.grad!.toFlatArray();
      };
      expect(gradientOf([2 ** 30, 1, -(2 ** 30), 3, 4], 'float32')).toEqual([0, 7, 0]);
      expect(gradientOf([1, 2 ** 30, 3, 4, -(2 ** 30)], 'float32')).toEqual([0, 0, 0]);
      expect(gradientOf(new Array<number>(1024).fill(1), 'bfloat16')).toEqual([0, 1024, 0]);
    });
  });

  it.each([5, 255, 256])('gives no row for ids outside a table of %i, nor them a gradient', (vocabulary) => {
    t.scope(() => {
      const weight = sample([vocabulary, 2], {}, open()).requiresGrad_();
      const ids = tensorOf([1, vocabulary, -1, 0, vocabulary - 1, -vocabulary, 1], [7], 'int64', open());
      if (weight.device.type === 'cpu') {
        expect(() => embedding(weight, ids)).toThrow(`embedding: id ${vocabulary} at position 1`);
        return;
      }
      const y = embedding(weight, ids);
      const row = (id: number) => rowsOf(weight.toFlatArray(), 2)[id]!;
      const none = [NaN, NaN];
      expect(y.toArray()).toEqual([row(1), none, none, row(0), row(vocabulary - 1), none, row(1)]);
      y.backward(tensorOf([1, 2, 4, 8, 16, 32, 64].flatMap((g) => [g, -g]), [7, 2], 'float32', open())); // prettier-ignore
      const expected = new Array<number>(vocabulary).fill(0);
      expected[0] = 8;
      expected[1] = 65;
      expected[vocabulary - 1]! += 16;
      expect(weight.grad!.toFlatArray()).toEqual(expected.flatMap((g) => (g === 0 ? [0, 0] : [g, -g])));
    });
  });

  it('adds rows that all go to one id of three digits', () => {
    t.scope(() => {
      const weight = t.zeros([66_000, 1], { device: open() }).requiresGrad_();
      const ids = tensorOf([65_536, 65_536], [2], 'int32', open());
      embedding(weight, ids).backward(tensorOf([1, 2], [2, 1], 'float32', open()));
      const gradient = weight.grad!.toFlatArray();
      expect([gradient[65_536], gradient.filter((x) => x !== 0)]).toEqual([3, [3]]);
    });
  });

  it('has a gradient of zeros for no ids', () => {
    t.scope(() => {
      const weight = sample([3, 2], {}, open()).requiresGrad_();
      const y = embedding(weight, tensorOf([], [0], 'int64', open()));
      expect(y.shape).toEqual([0, 2]);
      y.backward(t.zeros([0, 2], { device: open() }));
      expect(weight.grad!.toFlatArray()).toEqual([0, 0, 0, 0, 0, 0]);
    });
  });

  it('has the gradient that finite differences show', () => {
    t.scope(() => {
      const ids = tensorOf([2, 0, 2], [3], 'int64', open());
      expectFiniteDifferences(
        (weight) => embedding(weight, ids),
        [sample([4, 3], { dtype: 'float64' }, open())],
      );
    });
  });

  it('names shapes and dtypes that do not fit', () => {
    t.scope(() => {
      const ids = tensorOf([0, 1], [2], 'int32', open());
      expect(() => embedding(sample([4], {}, open()), ids)).toThrow(
        'weight must be [vocabulary, dimension], not [4]',
      );
      expect(() => embedding(sample([4, 2], {}, open()), t.cast(ids, 'float32'))).toThrow(
        'ids must be int32 or int64',
      );
    });
  });

  it.each([-1, 4])('refuses id %i of a table of four rows', (id) => {
    t.scope(() => {
      const weight = sample([4, 2], {}, open());
      const ids = tensorOf([1, id], [2], 'int64', open());
      const outcome = outcomeOf(() => embedding(weight, ids).toFlatArray().slice(2));
      expect(outcome).toMatch(weight.device.type === 'cpu' ? `id ${id} at position 1` : 'NaN,NaN');
    });
  });
}
