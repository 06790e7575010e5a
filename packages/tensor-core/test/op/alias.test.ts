import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';

const leaf = () => t.tensor([1, 2], { dtype: 'float64', requiresGrad: true });

describe('a result that would be the input itself', () => {
  it('is another handle with the same history: nothing is recorded, and either may go', () => {
    t.scope(() => {
      const x = leaf();
      const y = t.mul(x, 3);
      const same = t.reshape(y, [2]);
      expect(same).not.toBe(y);
      expect(same.storage).toBe(y.storage);
      expect(same.node).toBe(y.node);
      y.dispose();
      expect(() => t.reshape(y, [2])).toThrow(t.DisposedError);
      t.sum(same).backward();
      expect(x.grad!.toFlatArray()).toEqual([3, 3]);
    });
  });

  it('of one of several outputs is that output', () => {
    const both = t.defineFunction<t.Tensor[]>({
      name: 'both',
      forward: (_, a) => [t.mul(a!, 2), t.mul(a!, 5)],
      backward: (_, first, second) => t.mul(second ?? t.mul(first!, 0), 5),
    });
    t.scope(() => {
      const x = leaf();
      t.sum(t.reshape(both(x)[1]!, [2])).backward();
      expect(x.grad!.toFlatArray()).toEqual([5, 5]);
    });
  });

  it('has no history inside noGrad, and that of a leaf leads to the leaf', () => {
    t.scope(() => {
      const x = leaf();
      const y = t.mul(x, 3);
      expect(t.noGrad(() => t.reshape(y, [2])).requiresGrad).toBe(false);
      const same = t.reshape(x, [2]);
      expect(same.isLeaf).toBe(false);
      t.sum(same).backward();
      expect(x.grad!.toFlatArray()).toEqual([1, 1]);
    });
  });

  it('is called alias in errors', () => {
    t.scope(() => {
      const x = leaf();
      const y = t.mul(x, 3);
      expect(() => t.alias([1] as never)).toThrow('alias: takes tensors, not an array');
      expect(() => (t.alias as (...list: unknown[]) => void)(y, { dim: 1 })).toThrow(
        'alias: takes no further argument',
      );
      for (const gone of [x, y]) {
        gone.dispose();
        expect(() => t.alias(gone)).toThrow(/^alias: /);
      }
    });
  });
});
