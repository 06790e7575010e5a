import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';

const cpu = t.device('cpu');

describe('Storage', () => {
  it('can be released as often as it was retained, and then neither again', () => {
    const storage = new t.Storage(cpu, 64);
    storage.retain();
    storage.release();
    storage.release();
    expect(() => storage.release()).toThrow('release: a storage of 64 bytes on cpu has been freed already');
    expect(() => storage.retain()).toThrow(t.DisposedError);
    expect(storage.references).toBe(0);
  });
});

describe('a flat buffer', () => {
  const parts = () => {
    const flat = t.zeros([12]);
    return { flat, slices: [0, 4, 8].map((start) => t.slice(flat, 0, start, start + 4)) };
  };

  it('may be written beside what the tape has saved, and not in it', () => {
    t.scope(() => {
      const { flat, slices } = parts();
      const [a, b, c] = slices.map((slice) => slice.detach().requiresGrad_()) as [
        t.Tensor,
        t.Tensor,
        t.Tensor,
      ];
      const y = t.sum(t.mul(b, b));
      t.noGrad(() => t.fillInPlace(a, 1));
      t.noGrad(() => t.fillInPlace(c, 1));
      y.backward(undefined, { retainGraph: true });
      t.noGrad(() => t.fillInPlace(t.slice(flat, 0, 7, 9), 1));
      expect(() => y.backward()).toThrow(/written in place/);
    });
  });

  it('keeps the parameters beside one that is none any more', () => {
    t.scope(() => {
      const { slices } = parts();
      const [a, b] = slices.map((slice) => slice.detach().requiresGrad_()) as [t.Tensor, t.Tensor];
      a.requiresGrad_(false);
      let casts = 0;
      const stop = t.observeOps({ before: ({ name }) => void (casts += Number(name === 'cast')) });
      t.autocast('bfloat16', () => {
        const column = t.reshape(b, [4, 1]);
        t.matmul(column, t.reshape(b, [1, 4]));
        t.matmul(t.transpose(column), column);
      });
      stop();
      expect(casts).toBe(1);
    });
  });

  it('is cast by autocast part by part, again where it was written', () => {
    t.scope(() => {
      const { slices } = parts();
      const [a, b] = slices.map((slice) => slice.detach().requiresGrad_()) as [t.Tensor, t.Tensor];
      const product = (x: t.Tensor, y: t.Tensor) =>
        t.matmul(t.reshape(x, [1, 4]), t.reshape(y, [4, 1])).item();
      t.autocast('bfloat16', () => {
        expect(product(a, b)).toBe(0);
        t.noGrad(() => t.fillInPlace(b, 3));
        expect(product(b, b)).toBe(36);
        t.noGrad(() => t.fillInPlace(a, 2));
        expect(product(a, b)).toBe(24);
      });
    });
  });
});
