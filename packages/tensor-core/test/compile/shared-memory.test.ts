import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { CompileError, type Tensor, compile } from '../../src/index.ts';
import { increment } from './elsewhere.ts';

const values = (x: Tensor) => x.toFlatArray();

/** Where an error says that the memory is written. */
const elsewhere = /shares memory.*At .*elsewhere\.ts:\d/;

/** `f`, called until it is replayed. */
function replayed<F extends (...given: Tensor[]) => unknown>(fn: F, ...given: Parameters<F>) {
  const f = compile(fn);
  for (let call = 0; call < 2; call++) f(...given);
  expect(f.cache.hits).toBe(1);
  return f;
}

describe('a replay that writes', () => {
  it('refuses arguments that share what it writes, and says where it is written', () => {
    const weight = t.tensor([1, 2, 3, 4]);
    const first = replayed((x: Tensor, y: Tensor) => (increment(x), t.mul(y, 2)), t.ones([2]), t.ones([2]));
    const second = replayed((x: Tensor, y: Tensor) => (increment(y), t.mul(x, 2)), t.ones([2]), t.ones([2]));
    const captured = replayed(
      (x: Tensor) => {
        increment(weight);
        return t.mul(x, weight);
      },
      t.ones([4]),
    );
    const reads = replayed(
      (x: Tensor) => {
        const y = t.mul(x, weight);
        increment(x);
        return y;
      },
      t.ones([4]),
    );
    const part = t.slice(weight, 0, 0, 2);
    const before = values(weight);
    for (const call of [
      () => first(part, t.alias(part)),
      () => second(part, t.alias(part)),
      () => captured(weight),
      () => reads(weight),
    ]) {
      expect(call).toThrow(CompileError);
      expect(call).toThrow(elsewhere);
    }
    expect(values(weight)).toEqual(before);
  });

  it('takes arguments that share memory with each other, or elements of the same storage, where it writes none', () => {
    const [total, weight] = [t.tensor([0, 0]), t.tensor([1, 2, 3, 4])];
    const f = replayed(
      (x: Tensor, y: Tensor) => {
        t.addInPlace(total, t.mul(x, y));
        increment(t.slice(weight, 0, 0, 2));
        return t.mul(x, t.slice(weight, 0, 2, 3));
      },
      t.ones([2]),
      t.ones([2]),
    );
    const both = t.expand(t.full([1], 5), [2]);
    for (let call = 0; call < 2; call++) expect(values(f(both, t.alias(both)))).toEqual([15, 15]);
    // What it reads of the weight, and what it neither reads nor writes.
    expect(values(f(t.slice(weight, 0, 2, 4), t.ones([2])))).toEqual([9, 12]);
    expect(values(total)).toEqual([2 + 2 * 25 + 3, 2 + 2 * 25 + 4]);
    expect(values(weight)).toEqual([6, 7, 3, 4]);
    expect(f.cache).toMatchObject({ misses: 2, hits: 3 });
  });

  it('says where it writes an argument that something else works on', () => {
    const f = replayed((x: Tensor) => increment(x), t.ones([2]));
    const x = t.ones([2]);
    const release = x.storage.hold({ start: 0, end: 8 }, 'allReduce');
    expect(() => f(x)).toThrow(/an argument \[2\] that allReduce works on/);
    release();
    const total = t.zeros([2]);
    const captured = replayed((y: Tensor) => (increment(total), t.mul(y, 2)), t.ones([2]));
    const again = total.storage.hold({ start: 0, end: 8 }, 'allReduce');
    expect(() => captured(x)).toThrow(/allReduce works on.* The op add_ at .*elsewhere\.ts:[\d:]+ does so/);
    again();
  });
});

describe('a first call', () => {
  it('leaves a tensor alone that is disposed of while it runs', () => {
    const x = t.tensor([1, 2]);
    const f = compile((y: Tensor) => {
      increment(y);
      x.dispose();
      return t.mul(y, 3);
    });
    expect(values(f(x))).toEqual([6, 9]);
  });

  it('throws what the function throws, also after that has disposed of an argument that it wrote', () => {
    const f = compile((y: Tensor) => {
      increment(y);
      y.dispose();
      throw new Error('later');
    });
    expect(() => f(t.tensor([1, 2]))).toThrow('later');
  });

  it('goes on where an op has failed, with the numbers that each later op asks for', () => {
    let next = 1;
    const table = t.ones([2, 1]);
    const f = compile((x: Tensor, ids: Tensor) => {
      const y = t.dropout(x, { p: 0, generator });
      const seeds = t.uniform([1], { generator });
      try {
        t.embedding(table, ids);
      } catch {
        next++;
      }
      return t.add(t.mul(y, 0), t.add(seeds, t.uniform([1], { generator })));
    });
    const generator = new t.Generator(1);
    const eager = new t.Generator(1);
    const bad = t.tensor([7], { dtype: 'int64' });
    for (let call = 0; call < 3; call++) {
      t.dropout(t.ones([1]), { p: 0, generator: eager });
      const expected = t.add(t.uniform([1], { generator: eager }), t.uniform([1], { generator: eager }));
      expect(values(f(t.ones([1]), bad))).toEqual(values(expected));
    }
    expect([next, f.cache.hits]).toEqual([2, 2]);
  });
});
