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

describe('a storage that is held', () => {
  const ops: readonly (readonly [string, (x: t.Tensor) => void])[] = [
    ['fill_', (x) => t.fillInPlace(x, 1)],
    ['copy_', (x) => t.copyInPlace(x, t.ones(x.shape))],
    ['add_', (x) => t.addInPlace(x, t.ones(x.shape))],
  ];

  it.each(ops)('refuses %s where it is held, and there alone, until it is let go', (name, write) => {
    t.scope(() => {
      const x = t.zeros([6]);
      const { buffer } = x.storage;
      const letGo = x.storage.hold({ start: 8, end: 16 }, 'allReduce');
      const inside = `${name}: cannot write to [1] while allReduce, which is under way, works on it`;
      expect(() => write(t.slice(x, 0, 3, 4))).toThrow(inside);
      expect(() => write(x)).toThrow(t.DeviceError);
      expect(() => write(t.slice(x, 0, 0, 6, 2))).toThrow('cannot write to [3]');
      write(t.slice(x, 0, 1, 6, 3));
      write(t.slice(x, 0, 0, 2));
      write(t.slice(x, 0, 4, 6));
      expect(x.toFlatArray().slice(2, 4)).toEqual([0, 0]);
      expect(x.storage.buffer).toBe(buffer);
      letGo();
      letGo();
      expect(x.storage.holdsOn({ start: 0, end: 24 })).toEqual([]);
      write(x);
    });
  });

  it('lives on until all have let go, even where its tensors are gone', () => {
    const x = t.zeros([2]);
    const { storage } = x;
    const letGo = ['send', 'broadcast'].map((holder) => storage.hold({ start: 0, end: 8 }, holder));
    x.dispose();
    expect(storage.references).toBe(2);
    letGo[0]!();
    expect(storage.holdsOn({ start: 4, end: 9 }).map(({ holder }) => holder)).toEqual(['broadcast']);
    letGo[1]!();
    expect(storage.holdsOn({ start: 4, end: 8 })).toEqual([]);
    expect(() => storage.hold({ start: 0, end: 8 }, 'send')).toThrow(t.DisposedError);
  });
});

describe('the CPU, in place', () => {
  it('overwrites what is contiguous in place: a slice of a flat buffer, and nothing outside it', () => {
    t.scope(() => {
      const flat = t.tensor([1, 2, 3, 4, 5]);
      const { buffer } = flat.storage;
      const slice = t.slice(flat, 0, 1, 3);
      t.addInPlace(slice, slice);
      t.addInPlace(slice, t.slice(flat, 0, 3, 5));
      t.copyInPlace(t.slice(flat, 0, 0, 1), t.tensor([9], { dtype: 'int32' }));
      expect(flat.toFlatArray()).toEqual([9, 8, 11, 4, 5]);
      t.addInPlace(flat, flat);
      expect(flat.toFlatArray()).toEqual([18, 16, 22, 8, 10]);
      expect(flat.storage.buffer).toBe(buffer);
    });
  });

  it('a strided target, and an interleaved source in its storage', () => {
    t.scope(() => {
      const flat = t.tensor([1, 2, 3, 4]);
      t.addInPlace(t.slice(flat, 0, 0, 4, 2), t.slice(flat, 0, 1, 4, 2));
      expect(flat.toFlatArray()).toEqual([3, 2, 7, 4]);
    });
  });
});

describe('a flat buffer', () => {
  const parts = () => {
    const flat = t.zeros([12]);
    return { flat, slices: [0, 4, 8].map((start) => t.slice(flat, 0, start, start + 4)) };
  };

  it('may be written outside what the tape has saved, and not in it', () => {
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

  it('keeps the other parameters when one stops being a parameter', () => {
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

describe('memory that was let go', () => {
  /** Brings `values` back into `x`, and counts how often. */
  const letGo = (x: t.Tensor, values: readonly number[]) => {
    const count = { brought: 0 };
    x.storage.letGo(() => {
      count.brought++;
      const fresh = t.tensor([...values]);
      x.storage.moveIn(fresh.storage);
      fresh.dispose();
    });
    return count;
  };

  it('goes back to the device, and is brought back by whoever uses a tensor of it', () => {
    t.scope(() => {
      const before = cpu.allocatedBytes;
      const x = t.tensor([1, 2, 3, 4]);
      const part = t.slice(x, 0, 1, 3);
      const count = letGo(x, [1, 2, 3, 4]);
      expect(cpu.allocatedBytes).toBe(before);
      expect(x.storage.isAway).toBe(true);
      expect(() => x.storage.buffer).toThrow('has been let go');
      expect(t.add(part, 1).toFlatArray()).toEqual([3, 4]);
      expect(x.toFlatArray()).toEqual([1, 2, 3, 4]);
      expect(count.brought).toBe(1);
      expect(x.storage.isAway).toBe(false);
    });
  });

  it('is brought back for the backward pass too, which takes it for what was saved', () => {
    t.scope(() => {
      const x = t.tensor([1, 2, 3]).requiresGrad_();
      const weight = t.tensor([4, 5, 6]);
      const loss = t.sum(t.mul(x, weight));
      const count = letGo(weight, [4, 5, 6]);
      loss.backward();
      expect(x.grad!.toFlatArray()).toEqual([4, 5, 6]);
      expect(count.brought).toBe(1);
    });
  });

  it('is refused to the backward pass once other elements were noted', () => {
    t.scope(() => {
      const x = t.tensor([1, 2, 3]).requiresGrad_();
      const weight = t.tensor([4, 5, 6]);
      const loss = t.sum(t.mul(x, weight));
      letGo(weight, [7, 8, 9]);
      weight.storage.noteWrite({ start: 0, end: 12 });
      expect(() => loss.backward()).toThrow('was written in place after it had been saved');
    });
  });

  it('stays away with the last reference, and while a collective works on it it cannot go', () => {
    const x = t.tensor([1, 2]);
    const end = x.storage.hold({ start: 0, end: 8 }, 'allGather');
    expect(() => letGo(x, [])).toThrow('letGo: allGather works on the memory; wait for it first.');
    end();
    const before = cpu.allocatedBytes;
    letGo(x, []);
    expect(cpu.allocatedBytes).toBeLessThan(before);
    x.storage.letGo(() => {});
    expect(() => x.toFlatArray()).toThrow('nothing has brought it back');
    x.dispose();
    expect(cpu.allocatedBytes).toBeLessThan(before);
  });
});
