import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { sample, tensorOf } from '../support/samples.ts';
import type { OpenDevice } from '../support/vector-jacobian.ts';

/** flatten, split and chunk on one device. */
export function describeSplits(open: OpenDevice): void {
  const x = () => t.reshape(t.arange(0, 30, 1, { device: open(), dtype: 'float32' }), [5, 2, 3]);

  describe('flatten', () => {
    it('merges neighbouring dimensions', () => {
      t.scope(() => {
        expect(t.flatten(x()).toArray()).toEqual(x().toFlatArray());
        expect(t.flatten(x(), 1).shape).toEqual([5, 6]);
        expect(t.flatten(x(), 0, 1).shape).toEqual([10, 3]);
        expect(t.flatten(x(), -2, -1).shape).toEqual([5, 6]);
        expect(t.flatten(x(), 1, 1).shape).toEqual([5, 2, 3]);
        expect(t.flatten(t.transpose(x()), 1).toFlatArray()).toEqual(t.transpose(x()).toFlatArray());
        expect(t.flatten(t.tensor(3, { device: open() })).toArray()).toEqual([3]);
        expect(t.flatten(t.zeros([2, 0, 3], { device: open() })).shape).toEqual([0]);
      });
    });

    it('passes the gradient back', () => {
      t.scope(() => {
        const leaf = x().requiresGrad_();
        const g = sample([5, 6], { seed: 91 }, open());
        t.flatten(leaf, 1).backward(g);
        expect(leaf.grad!.shape).toEqual([5, 2, 3]);
        expect(leaf.grad!.toFlatArray()).toEqual(g.toFlatArray());
      });
    });

    it('names what it does not take', () => {
      t.scope(() => {
        expect(() => t.flatten(x(), 2, 1)).toThrow('flatten: dimension 2 of [5, 2, 3] lies behind 1');
        expect(() => t.flatten(x(), 0, 3)).toThrow('flatten: dimension 3');
      });
    });
  });

  describe('split', () => {
    const firsts = (parts: readonly t.Tensor[]) =>
      parts.map((part) => [...part.shape, part.toFlatArray()[0]]);

    it('gives consecutive views', () => {
      t.scope(() => {
        expect(firsts(t.split(x(), 2))).toEqual([
          [2, 2, 3, 0],
          [2, 2, 3, 12],
          [1, 2, 3, 24],
        ]);
        expect(firsts(t.split(x(), 5))).toEqual([[5, 2, 3, 0]]);
        expect(firsts(t.split(x(), [1, 0, 2], -1))).toEqual([
          [5, 2, 1, 0],
          [5, 2, 0, undefined],
          [5, 2, 2, 1],
        ]);
        const [first] = t.split(x(), 2);
        expect(first!.storage.references).toBeGreaterThan(1);
      });
    });

    it('splits nothing into one part', () => {
      t.scope(() => {
        const empty = t.zeros([0, 2], { device: open() });
        expect(t.split(empty, 2).map(({ shape }) => shape)).toEqual([[0, 2]]);
        expect(t.split(empty, 0).map(({ shape }) => shape)).toEqual([[0, 2]]);
        expect(t.split(empty, []).length).toBe(0);
      });
    });

    it('gives each part its gradient', () => {
      t.scope(() => {
        const leaf = x().requiresGrad_();
        const [, second] = t.split(leaf, [1, 1], 1);
        t.sum(t.mul(second!, 2)).backward();
        expect(leaf.grad!.toFlatArray()).toEqual(Array.from({ length: 30 }, (_, i) => (i % 6 < 3 ? 0 : 2)));
      });
    });

    it('names what it does not take', () => {
      t.scope(() => {
        expect(() => t.split(x(), [2, 2])).toThrow('the lengths [2, 2] must be whole numbers that sum to 5');
        expect(() => t.split(x(), [6, -1])).toThrow('the lengths [6, -1]');
        for (const length of [0, -1, 1.5]) {
          expect(() => t.split(x(), length)).toThrow('split: pieces of dimension 0 of [5, 2, 3]');
        }
        expect(() => t.split(t.tensor(1, { device: open() }), 1)).toThrow(
          'split: a tensor without dimensions',
        );
      });
    });
  });

  describe('chunk', () => {
    it('gives at most so many parts of one length', () => {
      t.scope(() => {
        const lengths = (count: number) => t.chunk(x(), count).map(({ shape }) => shape[0]);
        expect(lengths(1)).toEqual([5]);
        expect(lengths(2)).toEqual([3, 2]);
        expect(lengths(3)).toEqual([2, 2, 1]);
        expect(lengths(4)).toEqual([2, 2, 1]);
        expect(lengths(9)).toEqual([1, 1, 1, 1, 1]);
        expect(t.chunk(x(), 3, -1).map((part) => part.toFlatArray()[0])).toEqual([0, 1, 2]);
        const none = t.chunk(t.zeros([2, 0], { device: open() }), 3, 1);
        expect(none.map(({ shape }) => shape)).toEqual([
          [2, 0],
          [2, 0],
          [2, 0],
        ]);
      });
    });

    it('names what it does not take', () => {
      t.scope(() => {
        for (const count of [0, 1.5])
          expect(() => t.chunk(x(), count)).toThrow('chunk: takes a whole number');
        expect(() => t.chunk(x(), 1, 3)).toThrow('chunk: dimension 3');
      });
    });
  });
}

/** eye and linspace on one device. */
export function describeCreation(open: OpenDevice): void {
  describe('eye', () => {
    it.each([
      [1, 1],
      [4, 4],
      [2, 5],
      [3, 4],
      [5, 2],
      [4, 3],
      [3, 1],
      [0, 3],
      [3, 0],
    ])('is one on the diagonal of [%i, %i]', (rows, columns) => {
      t.scope(() => {
        const y = t.eye(rows, columns, { device: open() });
        expect([y.dtype, y.shape]).toEqual(['float32', [rows, columns]]);
        expect(y.toFlatArray()).toEqual(
          Array.from({ length: rows * columns }, (_, at) =>
            Number(Math.floor(at / columns) === at % columns),
          ),
        );
      });
    });

    it('is square by default, and takes options', () => {
      t.scope(() => {
        expect(t.eye(2, undefined, { device: open() }).toArray()).toEqual([
          [1, 0],
          [0, 1],
        ]);
        const bools = t.eye(2, 3, { device: open(), dtype: 'bool' });
        expect([bools.dtype, bools.toFlatArray()]).toEqual(['bool', [1, 0, 0, 0, 1, 0]]);
        const leaf = t.eye(2, 2, { device: open(), requiresGrad: true });
        expect([leaf.requiresGrad, leaf.isLeaf]).toEqual([true, true]);
        expect(() => t.eye(-1, 2, { device: open() })).toThrow('[-1, 2] is no shape');
      });
    });
  });

  describe('linspace', () => {
    const linspace = (start: number, end: number, steps: number, dtype?: t.DType) =>
      t.linspace(start, end, steps, { device: open(), ...(dtype && { dtype }) });

    it('meets both ends, at equal distances', () => {
      t.scope(() => {
        expect(linspace(0, 1, 5).toArray()).toEqual([0, 0.25, 0.5, 0.75, 1]);
        expect(linspace(3, -1, 3).toArray()).toEqual([3, 1, -1]);
        expect(linspace(2, 7, 2).toArray()).toEqual([2, 7]);
        expect(linspace(2, 7, 1).toArray()).toEqual([2]);
        expect(linspace(2, 7, 0).shape).toEqual([0]);
        const thirds = linspace(-0.1, 0.7, 98, 'float64').toFlatArray();
        expect([thirds[0], thirds[97]]).toEqual([-0.1, 0.7]);
        for (const [i, value] of thirds.entries()) {
          expect(Math.abs(value - (-0.1 + (0.8 * i) / 97))).toBeLessThan(2 ** -52);
        }
      });
    });

    it('cuts to whole numbers of an integer dtype', () => {
      t.scope(() => {
        expect(linspace(0, 10, 5, 'int64').toTypedArray()).toEqual(BigInt64Array.of(0n, 2n, 5n, 7n, 10n));
        expect(linspace(-5, 5, 4, 'int32').toTypedArray()).toEqual(Int32Array.of(-5, -1, 1, 5));
      });
    });

    it('is float32 by default, and takes options', () => {
      t.scope(() => {
        expect(linspace(0, 1, 3).dtype).toBe('float32');
        expect(linspace(0, 1, 3).device).toBe(open());
        const leaf = t.linspace(0, 1, 3, { device: open(), dtype: 'float16', requiresGrad: true });
        expect([leaf.dtype, leaf.requiresGrad]).toEqual(['float16', true]);
        expect(leaf.toArray()).toEqual(tensorOf([0, 0.5, 1], [3], 'float16', open()).toArray());
        for (const steps of [-1, 1.5]) {
          expect(() => linspace(0, 1, steps)).toThrow('linspace: takes a whole number of steps');
        }
      });
    });
  });
}
