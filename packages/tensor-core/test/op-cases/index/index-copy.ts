import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { sample, tensorOf } from '../support/samples.ts';
import type { OpenDevice } from '../support/vector-jacobian.ts';

const dtypes: readonly DType[] = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64', 'bool'];

/** What becomes of `target`, by numbers. */
function expected(target: Tensor, dimension: number, index: readonly number[], source: Tensor): number[] {
  const values = target.toFlatArray() as number[];
  const written = source.toFlatArray() as number[];
  const { shape } = target;
  const inner = shape.slice(dimension + 1).reduce((a, b) => a * b, 1);
  written.forEach((value, i) => {
    const j = Math.floor(i / inner) % index.length;
    const outer = Math.floor(i / inner / index.length);
    values[(outer * shape[dimension]! + index[j]!) * inner + (i % inner)] = value;
  });
  return values;
}

/** indexCopyInPlace on one device. */
export function describeIndexCopy(open: OpenDevice): void {
  const ids = (values: readonly number[], dtype: 'int32' | 'int64' = 'int64') =>
    tensorOf([...values], [values.length], dtype, open());
  const numbers = (shape: readonly number[], dtype: DType, seed: number) =>
    t.cast(t.mul(sample(shape, { seed }, open()), 4), dtype);

  it.each(dtypes)('writes slices of %s along every dimension', (dtype) => {
    t.scope(() => {
      for (const [dimension, index] of [
        [0, [3, 0]],
        [1, [2]],
        [2, [4, 1, 0]],
        [-1, [0, 1, 2, 3, 4]],
      ] as const) {
        const target = numbers([4, 3, 5], dtype, 1);
        const place = (dimension + 3) % 3;
        const source = numbers(
          [4, 3, 5].map((n, d) => (d === place ? index.length : n)),
          dtype,
          2,
        );
        const values = expected(target, place, index, source);
        t.indexCopyInPlace(target, dimension, ids(index, dimension === 1 ? 'int32' : 'int64'), source);
        expect(target.toFlatArray()).toEqual(values);
      }
    });
  });

  it('into and out of views of every kind, and nowhere else', () => {
    t.scope(() => {
      for (const dimension of [0, 1, 2]) {
        const all = numbers([6, 8, 10], 'float32', 3);
        const target = t.transpose(t.slice(t.slice(all, 0, 1, 6, 2), 2, 2, 9), 0, 2);
        const index = [2, 0];
        const shape = target.shape.map((n, d) => (d === dimension ? 2 : n));
        const source = t.transpose(numbers([shape[2]!, shape[1]!, shape[0]!], 'float32', 4), 0, 2);
        const values = expected(target, dimension, index, source);
        const untouched = t.toDevice(t.copy(all), t.device('cpu'));
        const every = t.slice(tensorOf([2, 7, 0, 7], [4], 'int32', open()), 0, 0, 4, 2);
        t.indexCopyInPlace(target, dimension, every, source);
        expect(target.toFlatArray()).toEqual(values);
        const kept = t.slice(untouched, 0, 0, 6, 2).toFlatArray();
        expect(t.slice(all, 0, 0, 6, 2).toFlatArray()).toEqual(kept);
        // One slice for all positions.
        const spread = t.expand(
          t.select(source, dimension, 0).shape.length ? t.slice(source, dimension, 0, 1) : source,
          shape,
        );
        const again = expected(target, dimension, index, t.contiguous(spread));
        t.indexCopyInPlace(target, dimension, ids(index), spread);
        expect(target.toFlatArray()).toEqual(again);
      }
    });
  });

  it('keeps the bits of NaN, infinities and zeros, and the last of equal indices', () => {
    t.scope(() => {
      const target = t.zeros([4], { device: open() });
      const source = tensorOf([1, NaN, -0, -Infinity, Infinity], [5], 'float32', open());
      t.indexCopyInPlace(target, 0, ids([2, 2, 1, 0, 0]), source);
      expect(target.toFlatArray()).toEqual([Infinity, -0, NaN, 0]);
    });
  });

  it('of many blocks, and of slices with a single element', () => {
    t.scope(() => {
      const target = numbers([50, 7, 300], 'float32', 5);
      const source = numbers([50, 1, 300], 'float32', 6);
      const values = expected(target, 1, [5], source);
      t.indexCopyInPlace(target, 1, ids([5], 'int32'), source);
      expect(target.toFlatArray()).toEqual(values);
      const vector = numbers([9], 'int64', 7);
      const some = numbers([3], 'int64', 8);
      const written = expected(vector, 0, [8, 1, 4], some);
      t.indexCopyInPlace(vector, 0, ids([8, 1, 4]), some);
      expect(vector.toFlatArray()).toEqual(written);
    });
  });

  it('has the gradients of what stays and of what is written', () => {
    t.scope(() => {
      const target = sample([3, 2], { seed: 9 }, open()).requiresGrad_();
      const source = sample([2, 2], { seed: 10 }, open()).requiresGrad_();
      const y = t.mul(target, 2);
      t.indexCopyInPlace(y, 0, ids([2, 0]), t.mul(source, 3));
      y.backward(tensorOf([1, 2, 3, 4, 5, 6], [3, 2], 'float32', open()));
      expect(target.grad!.toFlatArray()).toEqual([0, 0, 6, 8, 0, 0]);
      expect(source.grad!.toFlatArray()).toEqual([15, 18, 3, 6]);
    });
  });

  it.each([-1, 3])('writes nothing for index %i of a length of three', (index) => {
    t.scope(() => {
      const target = sample([3, 2], {}, open());
      const source = sample([2, 2], { seed: 11 }, open());
      const before = target.toFlatArray();
      const write = () => t.indexCopyInPlace(target, 0, ids([1, index]), source);
      if (target.device.type === 'cpu') {
        expect(write).toThrow(
          `indexCopyInPlace: index ${index} at position 1 is outside a dimension of length 3`,
        );
        expect(target.toFlatArray()).toEqual(before);
        return;
      }
      write();
      expect(target.toFlatArray()).toEqual(
        expected(
          tensorOf([...(before as number[])], [3, 2], 'float32', open()),
          0,
          [1],
          t.slice(source, 0, 0, 1),
        ),
      );
    });
  });

  it('writes nothing of nothing', () => {
    t.scope(() => {
      const target = sample([3, 2], {}, open());
      const before = target.toFlatArray();
      t.indexCopyInPlace(target, 0, ids([]), t.zeros([0, 2], { device: open() }));
      t.indexCopyInPlace(
        t.zeros([3, 0], { device: open() }),
        0,
        ids([1]),
        t.zeros([1, 0], { device: open() }),
      );
      expect(target.toFlatArray()).toEqual(before);
      const empty = t.zeros([3, 0], { device: open() });
      if (empty.device.type === 'cpu')
        expect(() => t.indexCopyInPlace(empty, 0, ids([3]), t.zeros([1, 0], { device: open() }))).toThrow(
          'is outside',
        );
    });
  });

  it('refuses what does not fit', () => {
    t.scope(() => {
      const x = sample([2, 3], {}, open());
      const row = sample([1, 3], {}, open());
      const write =
        (...given: unknown[]) =>
        () =>
          t.indexCopyInPlace(...(given as Parameters<typeof t.indexCopyInPlace>));
      expect(write(x, 0, ids([0, 1]), row)).toThrow(
        'a source [1, 3] does not fit: 2 slices of [2, 3] along dimension 0 are [2, 3]',
      );
      expect(write(x, 1, ids([0]), row)).toThrow('are [2, 1]');
      expect(write(x, 2, ids([0]), row)).toThrow('indexCopyInPlace');
      expect(write(x, 0, t.view(ids([0]), [1, 1]), row)).toThrow('the index must be a vector, not [1, 1]');
      expect(write(x, 0, tensorOf([0], [1], 'float32', open()), row)).toThrow('index must be int32 or int64');
      expect(write(x, 0, ids([0]), t.cast(row, 'float64'))).toThrow(
        'a source of float64 is not written into float32',
      );
      expect(write(t.zeros([], { device: open() }), 0, ids([0]), row)).toThrow('indexCopyInPlace');
      expect(write(t.expand(row, [2, 3]), 0, ids([0]), t.copy(row))).toThrow('lie at one place');
      // The source is the memory that is written, also in the same layout.
      expect(write(x, 0, ids([1, 0]), x)).toThrow('shares memory with the target');
      expect(write(x, 0, ids([1]), t.slice(x, 0, 0, 1))).toThrow('the source [1, 3] shares memory');
      const places = tensorOf([0, 1, 2], [3], 'int64', open());
      expect(write(places, 0, places, ids([7, 8, 9]))).toThrow('the index [3] shares memory');
      const wide = sample([2, 6], {}, open());
      const [left, right] = [t.slice(wide, 1, 0, 3), t.slice(wide, 1, 3, 6)];
      const values = right.toFlatArray();
      t.indexCopyInPlace(left, 0, ids([0, 1]), right);
      expect(left.toFlatArray()).toEqual(values);
    });
  });

  it('is recorded or refused as other writes are', () => {
    t.scope(() => {
      const leaf = sample([2, 3], {}, open()).requiresGrad_();
      const row = sample([1, 3], {}, open());
      expect(() => t.indexCopyInPlace(leaf, 0, ids([0]), row)).toThrow('is a leaf that requires a gradient');
      t.noGrad(() => t.indexCopyInPlace(leaf, 0, ids([0]), row));
      const y = t.mul(leaf, 2);
      const other = t.view(y, [6]);
      expect(() => t.indexCopyInPlace(y, 0, ids([0]), row)).toThrow('shares its memory with other handles');
      other.dispose();
      const saved = t.exp(y);
      t.indexCopyInPlace(saved, 0, ids([0]), row);
      expect(() => t.sum(saved).backward()).toThrow('written');
    });
  });

  it('is one kernel for two of one index in a compiled function', () => {
    t.scope(() => {
      const make = () => [t.zeros([5, 2], { device: open() }), t.zeros([5, 2], { device: open() })] as const;
      const [plain, memory] = [make(), make()];
      const write = ([keys, values]: readonly [Tensor, Tensor], at: Tensor, row: Tensor) => {
        t.indexCopyInPlace(keys, 0, at, t.mul(row, 2));
        t.indexCopyInPlace(values, 0, at, t.softmax(row, 1));
        // Neither identical nor independent.
        t.indexCopyInPlace(keys, 1, t.slice(at, 0, 0, 1), t.slice(values, 1, 0, 1));
        return t.add(keys, values);
      };
      const f = t.compile((at: Tensor, row: Tensor) => write(memory, at, row));
      for (const at of [
        [1, 0],
        [0, 4],
        [1, 3],
        [0, 2],
      ]) {
        const row = tensorOf([1, 2, 3, at[1]!], [2, 2], 'float32', open());
        const result = f(ids(at), row);
        expect(result.toFlatArray()).toEqual(write(plain, ids(at), row).toFlatArray());
        expect(memory.map((each) => each.toFlatArray())).toEqual(plain.map((each) => each.toFlatArray()));
      }
      const ops = f
        .explain()
        .at(-1)!
        .table.map(({ op }) => op);
      const isGpu = open().type === 'cuda';
      expect(ops.filter((op) => op === 'fused_indexCopy__indexCopy_')).toHaveLength(isGpu ? 1 : 0);
      f.dispose();
    });
  });

  it('runs in a compiled function, at an index that is new in each run', () => {
    t.scope(() => {
      const memory = t.zeros([5, 2], { device: open() });
      const f = t.compile((at: Tensor, row: Tensor) => {
        t.indexCopyInPlace(memory, 0, at, t.mul(row, 2));
        return t.sum(memory, { dims: 0 });
      });
      const plain = t.zeros([5, 2], { device: open() });
      for (const at of [3, 0, 3, 4]) {
        const row = t.full([1, 2], at + 1, { device: open() });
        t.indexCopyInPlace(plain, 0, ids([at]), t.mul(row, 2));
        expect(f(ids([at]), row).toFlatArray()).toEqual(t.sum(plain, { dims: 0 }).toFlatArray());
        expect(memory.toFlatArray()).toEqual(plain.toFlatArray());
      }
      f.dispose();
    });
  });
}
