import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { Device } from '../../src/index.ts';
import { sample, tensorOf } from './samples.ts';

/** gather on one device. */
export function describeGather(open: () => Device): void {
  it.each(['float32', 'float16', 'bfloat16'] as const)(
    'takes elements along any dimension in %s',
    (dtype) => {
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
    },
  );

  it('adds the gradients of an element that was taken twice', () => {
    t.scope(() => {
      const x = sample([2, 3, 2], {}, open()).requiresGrad_();
      const index = tensorOf([2, 0, 2, 1, 0, 0, 1, 0, 1, 2, 2, 2], [2, 3, 2], 'int32', open());
      t.sum(t.gather(x, 1, index)).backward();
      expect(x.grad!.toFlatArray()).toEqual([1, 2, 0, 1, 2, 0, 0, 1, 2, 0, 1, 2]);
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
