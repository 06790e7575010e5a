import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';

const leaf = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64', requiresGrad: true });
const plain = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64' });
const values = (x: t.Tensor) => [...(x.toTypedArray() as Float64Array)];

describe('in-place writes with gradients enabled', () => {
  it('are recorded: the source gets its gradient', () => {
    t.scope(() => {
      const v = leaf([1, 2]);
      const y = plain([10, 20]);
      t.addInPlace(y, t.mul(v, 2));
      t.sum(t.mul(y, y)).backward();
      expect(values(y)).toEqual([12, 24]);
      expect(values(v.grad!)).toEqual([2 * 12 * 2, 2 * 24 * 2]);
    });
  });

  it('are recorded: what the target was made of keeps its gradient, or gets 0 where it is overwritten', () => {
    t.scope(() => {
      const [v, w] = [leaf([1, 2]), leaf([3, 4])];
      const y = t.mul(v, 5);
      t.addInPlace(y, w);
      t.addInPlace(y, w);
      t.sum(y).backward();
      expect([values(v.grad!), values(w.grad!)]).toEqual([
        [5, 5],
        [2, 2],
      ]);
      [v.grad, w.grad] = [null, null];
      const z = t.mul(v, 5);
      t.copyInPlace(z, w);
      t.sum(t.mul(z, 3)).backward();
      expect(values(w.grad!)).toEqual([3, 3]);
      expect(values(v.grad!)).toEqual([0, 0]);
    });
  });

  it('cast the gradient to the source', () => {
    t.scope(() => {
      const v = t.ones([2], { requiresGrad: true });
      const y = plain([1, 2]);
      t.addInPlace(y, v);
      t.sum(y).backward();
      expect(v.grad!.dtype).toBe('float32');
    });
  });

  it('refuse leaves that require a gradient, and allow them inside noGrad', () => {
    t.scope(() => {
      const v = leaf([1, 2]);
      for (const write of [t.addInPlace, t.copyInPlace])
        expect(() => write(v, plain([1, 1]))).toThrow(
          'is a leaf that requires a gradient; write to it inside noGrad()',
        );
      expect(() => t.fillInPlace(v, 0)).toThrow(t.AutogradError);
      t.noGrad(() => t.addInPlace(v, plain([1, 1])));
      expect(values(v)).toEqual([2, 3]);
    });
  });

  it('refuse targets that share their memory, whose other views would miss the gradient', () => {
    t.scope(() => {
      const base = plain([
        [1, 2],
        [3, 4],
      ]);
      const row = t.select(base, 0, 0);
      expect(() => t.addInPlace(row, leaf([1, 1]))).toThrow('shares its memory with other handles or views');
      expect(() => t.addInPlace(t.slice(t.mul(leaf([1, 2]), 2), 0, 0, 1), plain([1]))).toThrow(
        t.AutogradError,
      );
      t.addInPlace(row, plain([1, 1]));
      expect(values(base)).toEqual([2, 3, 3, 4]);
    });
  });

  it('refuse ops without a gradient on tensors with a history', () => {
    t.scope(() => {
      expect(() => t.fillInPlace(t.mul(leaf([1]), 2), 0)).toThrow('fill_: is not recorded');
    });
  });

  it('invalidate what was saved', () => {
    t.scope(() => {
      const x = leaf([1, 2]);
      const y = t.exp(x);
      t.addInPlace(y, t.mul(x, 1));
      expect(() => t.sum(y).backward()).toThrow(/exp was written in place/);
    });
  });
});

describe('in-place writes', () => {
  it('refuse targets whose elements overlap', () => {
    t.scope(() => {
      const wide = t.expand(plain([1]), [3]);
      expect(() => t.addInPlace(wide, plain([1, 2, 3]))).toThrow(
        /several elements of the target \[3\] with strides \[0\]/,
      );
      expect(() => t.fillInPlace(wide, 1)).toThrow(t.ShapeError);
      t.fillInPlace(t.expand(plain([1]), [1]), 2);
      t.fillInPlace(
        t.transpose(
          plain([
            [1, 2],
            [3, 4],
          ]),
        ),
        2,
      );
    });
  });

  it('refuse a source that overlaps the target in another layout', () => {
    t.scope(() => {
      const x = plain([1, 2, 3, 4]);
      const [head, tail] = [t.slice(x, 0, 0, 3), t.slice(x, 0, 1, 4)];
      expect(() => t.addInPlace(head, tail)).toThrow('shares memory with the target [3] in another layout');
      t.addInPlace(t.slice(x, 0, 0, 2), t.slice(x, 0, 2, 4));
      t.addInPlace(x, x);
      expect(values(x)).toEqual([8, 12, 6, 8]);
    });
  });

  it('are refused before anything changes', () => {
    t.scope(() => {
      const v = leaf([1]);
      const { version } = v.storage;
      expect(() => t.addInPlace(v, plain([1]))).toThrow(t.AutogradError);
      expect(v.storage.version).toBe(version);
      expect(values(v)).toEqual([1]);
    });
  });
});
