import { describe, expect, it } from 'vitest';
import * as t from '../../../../src/index.ts';
import type { MemoryView, TensorSpec } from '../../../../src/index.ts';
import { defineOp } from '../../../../src/op/op.ts';
import { callSignature, chunkedSignature } from '../../../../src/backends/cpu/lowering/signature.ts';
import { tensorOf, viewOf } from '../fixtures.ts';

const makeOp = (variant?: (attributes: object) => string) =>
  defineOp<object>({
    name: 'same',
    autocast: 'none',
    infer: ([a]) => [a!],
    ...(variant && { variant }),
    cuda: { kind: 'pointwise', expressions: () => ['a'] },
    cpu: { kind: 'host', run: () => undefined },
  });

const [op, other] = [makeOp(), makeOp()];
const strided = { shape: [2, 2], strides: [3, 1], offset: 1 };
const storage = tensorOf([3, 3]);
const view = viewOf(storage, strided);
const output: TensorSpec = { shape: [2, 2], dtype: 'float32' };

describe("a session's key", () => {
  const base = callSignature(op, { n: 1 }, [view, view], [output]);
  const larger = viewOf(tensorOf([4, 3]), strided);
  const otherDType: MemoryView = viewOf(tensorOf([3, 3], undefined, 'int32'), strided);
  it.each<[string, string]>([
    ['op of the same name', callSignature(other, { n: 1 }, [view, view], [output])],
    ['attributes', callSignature(op, { n: 2 }, [view, view], [output])],
    ['offset', callSignature(op, { n: 1 }, [viewOf(storage, { ...strided, offset: 0 }), view], [output])],
    [
      'offset of the second',
      callSignature(op, { n: 1 }, [view, viewOf(storage, { ...strided, offset: 0 })], [output]),
    ],
    [
      'strides',
      callSignature(op, { n: 1 }, [viewOf(storage, { ...strided, strides: [1, 3] }), view], [output]),
    ],
    ['shape', callSignature(op, { n: 1 }, [viewOf(storage, { ...strided, shape: [2, 1] }), view], [output])],
    ['size of the storage', callSignature(op, { n: 1 }, [larger, view], [output])],
    ['dtype', callSignature(op, { n: 1 }, [otherDType, view], [output])],
    ['number of inputs', callSignature(op, { n: 1 }, [view], [output])],
    ["output's dtype", callSignature(op, { n: 1 }, [view, view], [{ ...output, dtype: 'bool' }])],
    ["output's shape", callSignature(op, { n: 1 }, [view, view], [{ ...output, shape: [4] }])],
    ['number of outputs', callSignature(op, { n: 1 }, [view, view], [output, output])],
  ])('tells apart: %s', (_, changed) => {
    expect(changed).not.toBe(base);
  });

  it('is the same for equal calls, and for dense tensors wherever they are', () => {
    expect(callSignature(op, { n: 1 }, [view, view], [output])).toBe(base);
    const rows = [0, 3].map((offset) => viewOf(storage, { shape: [1, 3], strides: [3, 1], offset }));
    const keys = rows.map((row) => callSignature(op, { n: 1 }, [row], [output]));
    expect(keys[0]).toBe(keys[1]);
  });

  it("does not read an op's number and the start of its variant as one", () => {
    const keys = new Set<string>();
    // Whatever numbers these ops get, "1" and "12" among them would meet "2" and "" without a mark between.
    const ops = Array.from({ length: 120 }, () => makeOp(({ text }: { text?: string }) => text ?? ''));
    const texts = ['', '0', '1', '2', '5', '10', '12', '20', '35'];
    for (const each of ops)
      for (const text of texts) keys.add(callSignature(each, { text }, [view], [output]));
    expect(keys.size).toBe(ops.length * texts.length);
  });

  it('of pieces distinguishes ops, attributes, lengths and dtypes', () => {
    const int = { ...output, dtype: 'int32' as const };
    const keys = [
      chunkedSignature(op, { n: 1 }, [output], [output], 8),
      chunkedSignature(other, { n: 1 }, [output], [output], 8),
      chunkedSignature(op, { n: 2 }, [output], [output], 8),
      chunkedSignature(op, { n: 1 }, [output], [output], 9),
      chunkedSignature(op, { n: 1 }, [int], [output], 8),
      chunkedSignature(op, { n: 1 }, [output], [int], 8),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe('one after another, with one part changed', () => {
  it('columns of one tensor have values of their own', () => {
    t.scope(() => {
      const x = t.reshape(t.arange(0, 12, 1, { dtype: 'float32' }), [3, 4]);
      const columns = [0, 1, 3].map((i) => t.mul(t.slice(x, 1, i, i + 1), 2).toFlatArray());
      expect(columns).toEqual([
        [0, 8, 16],
        [2, 10, 18],
        [6, 14, 22],
      ]);
      const pairs = [0, 1, 2].map((i) =>
        t.add(t.slice(x, 1, i, i + 2), t.slice(x, 1, 2 - i, 4 - i)).toFlatArray(),
      );
      expect(pairs).toEqual([
        [2, 4, 10, 12, 18, 20],
        [2, 4, 10, 12, 18, 20],
        [2, 4, 10, 12, 18, 20],
      ]);
    });
  });

  it('numbers, sides, dtypes and strides do not collide', () => {
    t.scope(() => {
      const x = t.tensor([
        [1, 2],
        [3, 4],
      ]);
      expect(t.sub(x, 1).toFlatArray()).toEqual([0, 1, 2, 3]);
      expect(t.sub(x, 2).toFlatArray()).toEqual([-1, 0, 1, 2]);
      expect(t.sub(2, x).toFlatArray()).toEqual([1, 0, -1, -2]);
      expect(t.sub(t.transpose(x), 1).toFlatArray()).toEqual([0, 2, 1, 3]);
      expect(t.sub(t.cast(x, 'int32'), 1).dtype).toBe('int32');
      expect(t.where(t.greater(x, 2), x, 0).toFlatArray()).toEqual([0, 0, 3, 4]);
      expect(t.where(t.greater(x, 2), 0, x).toFlatArray()).toEqual([1, 2, 0, 0]);
      expect(t.where(t.greater(x, 2), 5, x).toFlatArray()).toEqual([1, 2, 5, 5]);
      expect(t.slice(t.matmul(x, x), 0, 1).toFlatArray()).toEqual([15, 22]);
      expect(t.slice(t.matmul(x, x, { scale: 2 }), 0, 1).toFlatArray()).toEqual([30, 44]);
      expect(t.slice(t.matmul(t.transpose(x), x), 0, 1).toFlatArray()).toEqual([14, 20]);
    });
  });
});
