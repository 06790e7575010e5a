import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';

import { sample, tensorOf } from '../support/samples.ts';
import { type OpenDevice, floatingPointDTypes } from '../support/vector-jacobian.ts';

/** gather on one device. */
export function describeGather(open: OpenDevice, dtypes = floatingPointDTypes): void {
  it.each(['int32', 'int64', 'bool'] as const)('takes elements of %s', (dtype) => {
    t.scope(() => {
      const index = t.tensor([[1, 1, 0]], { dtype: 'int64', device: open() });
      const y = t.gather(t.tensor([[0, 1]], { dtype, device: open() }), 1, index);
      expect([y.dtype, y.toFlatArray()]).toEqual([dtype, [1, 1, 0]]);
    });
  });

  it.each(dtypes)('takes elements along any dimension in %s', (dtype) => {
    t.scope(() => {
      const x = t.cast(
        t.tensor(
          [
            [1, 2, 3],
            [4, 5, 6],
          ],
          { device: open() },
        ),
        dtype,
      );
      const along1 = tensorOf([2, 0, 1, 1], [2, 2], 'int64', open());
      expect(t.gather(x, 1, along1).toFlatArray()).toEqual([3, 1, 5, 5]);
      const along0 = tensorOf([1, 0, 1], [1, 3], 'int32', open());
      expect(t.gather(x, 0, along0).toFlatArray()).toEqual([4, 2, 6]);
    });
  });

  it('adds the gradients of an element that was taken twice', () => {
    t.scope(() => {
      const x = sample([2, 3, 2], {}, open()).requiresGrad_();
      const index = tensorOf([2, 0, 2, 1, 0, 0, 1, 0, 1, 2, 2, 2], [2, 3, 2], 'int32', open());
      t.sum(t.gather(x, 1, index)).backward();
      expect(x.grad!.toFlatArray()).toEqual([1, 2, 0, 1, 2, 0, 0, 1, 2, 0, 1, 2]);
    });
  });

  it('takes negative zero, Infinity and NaN as they are, over many blocks', () => {
    t.scope(() => {
      const x = sample([3, 400, 7], {}, open());
      const special = tensorOf([-0, Infinity, NaN, -Infinity], [4], 'float32', open());
      const index = tensorOf([3, 2, 1, 0, 0], [5], 'int64', open());
      expect(t.gather(special, 0, index).toFlatArray()).toEqual([-Infinity, NaN, Infinity, -0, -0]);
      const choices = Array.from({ length: 3 * 300 * 7 }, (_, i) => (i * 37) % 400);
      const values = x.toFlatArray();
      const expected = choices.map((at, i) => values[(Math.floor(i / 2100) * 400 + at) * 7 + (i % 7)]!);
      const y = t.gather(x, 1, tensorOf(choices, [3, 300, 7], 'int32', open()));
      expect(y.toFlatArray()).toEqual(expected);
    });
  });

  it('adds gradients over many blocks', () => {
    t.scope(() => {
      const x = sample([60, 4, 7], {}, open()).requiresGrad_();
      const choices = Array.from({ length: 60 * 5 * 7 }, (_, i) => (i * 11) % 4);
      const g = Array.from(choices, (_, i) => i % 13);
      t.gather(x, 1, tensorOf(choices, [60, 5, 7], 'int64', open())).backward(
        tensorOf(g, [60, 5, 7], 'float32', open()),
      );
      const expected = new Array<number>(60 * 4 * 7).fill(0);
      choices.forEach((at, i) => (expected[(Math.floor(i / 35) * 4 + at) * 7 + (i % 7)]! += g[i]!));
      expect(x.grad!.toFlatArray()).toEqual(expected);
    });
  });

  it.each([-1, 3])('gives no element for index %i of a length of three, and it no gradient', (index) => {
    t.scope(() => {
      const x = sample([3, 3], {}, open()).requiresGrad_();
      const indices = tensorOf([0, index, 1], [3, 1], 'int64', open());
      if (x.device.type === 'cpu') {
        const message = `gather: index ${index} at position 1 is outside a dimension of length 3`;
        expect(() => t.gather(x, 1, indices)).toThrow(message);
        return;
      }
      const y = t.gather(x, 1, indices);
      const values = x.toFlatArray();
      expect(y.toFlatArray()).toEqual([values[0], NaN, values[7]]);
      y.backward(t.ones([3, 1], { device: open() }));
      expect(x.grad!.toFlatArray()).toEqual([1, 0, 0, 0, 0, 0, 0, 1, 0]);
      const outside = (dtype: t.DType) =>
        t.gather(t.cast(t.ones([3, 3], { device: open() }), dtype), 1, indices);
      expect(outside('int32').toFlatArray()).toEqual([1, -1, 1]);
      expect(outside('bool').toFlatArray()).toEqual([1, 1, 1]);
    });
  });

  it('gives nothing of nothing, and a gradient of zeros', () => {
    t.scope(() => {
      const x = sample([2, 3], {}, open()).requiresGrad_();
      const y = t.gather(x, 1, t.zeros([2, 0], { dtype: 'int64', device: open() }));
      expect(y.shape).toEqual([2, 0]);
      t.sum(y).backward();
      expect(x.grad!.toFlatArray()).toEqual([0, 0, 0, 0, 0, 0]);
    });
  });

  it('refuses what does not fit', () => {
    t.scope(() => {
      const x = sample([2, 3], {}, open());
      const index = tensorOf([0, 1], [1, 2], 'int32', open());
      expect(() => t.gather(x, 1, index)).toThrow('an index [1, 2] does not fit [2, 3]');
      expect(() => t.gather(x, 1, x)).toThrow('index must be int32 or int64');
    });
  });
}
