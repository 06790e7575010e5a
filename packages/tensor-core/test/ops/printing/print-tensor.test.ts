import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';

/** The values in the text of a tensor, without what follows them. */
const values = (x: Tensor) => String(x).replace(/,\s*shape [^]*$/, '');

const floats = (numbers: t.NestedNumbers) => t.tensor(numbers, { dtype: 'float64' });

// The values as NumPy 1.24 prints them with np.set_printoptions(precision=4).
describe('a printed tensor', () => {
  it.each<[string, t.NestedNumbers, string]>([
    ['pads to one column', [1, 2.5, -10.125], 'tensor([  1.   ,   2.5  , -10.125]'],
    ['rounds to four places, halves to even', [0.03125, 0.09375, 1.00006], 'tensor([0.0312, 0.0938, 1.0001]'],
    ['shows the sign of zero', [-0, 1.5], 'tensor([-0. ,  1.5]'],
    ['writes NaN and infinities in the column', [1, NaN, -Infinity], 'tensor([  1.,  nan, -inf]'],
    ['writes a lone NaN', [NaN], 'tensor([nan]'],
    ['takes exponents from 1e8 on', [1e8, 1e7], 'tensor([1.e+08, 1.e+07]'],
    ['takes none just below', [99999999, 1e7], 'tensor([99999999., 10000000.]'],
    ['takes exponents below 1e-4', [1e-5, 1e-5], 'tensor([1.e-05, 1.e-05]'],
    ['takes none at 1e-4', [1e-4, 1e-4], 'tensor([0.0001, 0.0001]'],
    ['takes exponents where numbers are far apart', [0.1, 123456.789], 'tensor([1.0000e-01, 1.2346e+05]'],
    ['takes none up to a ratio of 1000', [1, 1000], 'tensor([   1., 1000.]'],
    ['widens exponents', [1e-5, 1e-120], 'tensor([1.e-005, 1.e-120]'],
    ['rounds halves of exponents to even', [123465, 1], 'tensor([1.2346e+05, 1.0000e+00]'],
  ])('%s', (_, numbers, text) => {
    t.scope(() => expect(values(floats(numbers))).toBe(text));
  });

  it('has the fewest digits that its dtype needs', () => {
    t.scope(() => {
      const numbers = [0.1, 0.7, 8552];
      expect(values(t.tensor(numbers.slice(0, 2), { dtype: 'float16' }))).toBe('tensor([0.1, 0.7]');
      expect(values(t.tensor([8552], { dtype: 'float16' }))).toBe('tensor([8552.]');
      expect(values(t.tensor([0.1, 0.3], { dtype: 'bfloat16' }))).toBe('tensor([0.1, 0.3]');
      expect(values(t.tensor([0.1, 16777216]))).toBe('tensor([1.0000e-01, 1.6777e+07]');
    });
  });

  it('writes integers whole, and bools as JavaScript does', () => {
    t.scope(() => {
      const large = t.fromTypedArray(BigInt64Array.of(2n ** 62n + 1n, -1n), [2]);
      expect(values(large)).toBe('tensor([4611686018427387905,                  -1]');
      expect(
        values(
          t.tensor(
            [
              [1, -20],
              [300, 4],
            ],
            { dtype: 'int32' },
          ),
        ),
      ).toBe('tensor([[  1, -20],\n        [300,   4]]');
      expect(values(t.tensor([1, 0], { dtype: 'bool' }))).toBe('tensor([ true, false]');
    });
  });

  it('nests as deep as there are dimensions', () => {
    t.scope(() => {
      expect(values(t.tensor(3.5))).toBe('tensor(3.5');
      expect(values(t.zeros([0, 3]))).toBe('tensor([]');
      expect(values(t.zeros([2, 2, 1]))).toBe(
        'tensor([[[0.],\n         [0.]],\n\n        [[0.],\n         [0.]]]',
      );
    });
  });

  it('breaks lines before the 75th character', () => {
    t.scope(() => {
      const lines = values(t.arange(100, 120)).split('\n');
      expect(lines).toEqual([
        `tensor([${Array.from({ length: 13 }, (_, i) => `${100 + i},`).join(' ')}`,
        `        113, 114, 115, 116, 117, 118, 119]`,
      ]);
    });
  });

  it('shows all of 1000 elements, and three at each end of more', () => {
    t.scope(() => {
      expect(values(t.arange(1000))).toContain(' 500,');
      expect(values(t.arange(1001))).toBe('tensor([   0,    1,    2, ...,  998,  999, 1000]');
      // Dimensions of up to six elements are shown whole.
      const rows = values(t.reshape(t.arange(6 * 7 * 30), [6, 7, 30])).split('\n\n');
      expect(rows).toHaveLength(6);
      expect(rows[0]).toBe(
        [
          'tensor([[[   0,    1,    2, ...,   27,   28,   29],',
          '         [  30,   31,   32, ...,   57,   58,   59],',
          '         [  60,   61,   62, ...,   87,   88,   89],',
          '         ...,',
          '         [ 120,  121,  122, ...,  147,  148,  149],',
          '         [ 150,  151,  152, ...,  177,  178,  179],',
          '         [ 180,  181,  182, ...,  207,  208,  209]],',
        ].join('\n'),
      );
    });
  });

  it('shows views by their own elements', () => {
    t.scope(() => {
      const x = t.reshape(t.arange(24), [4, 6]);
      expect(values(t.transpose(t.slice(x, 0, 1, 4, 2)))).toBe(
        [
          'tensor([[ 6, 18],',
          ...[7, 8, 9, 10].map((n) => `        [${n < 10 ? ' ' : ''}${n}, ${n + 12}],`),
          '        [11, 23]]',
        ].join('\n'),
      );
      expect(values(t.expand(t.tensor([7]), [2, 2]))).toBe('tensor([[7., 7.],\n        [7., 7.]]');
    });
  });

  it('shows shape, dtype, device and gradient', () => {
    t.scope(() => {
      const leaf = t.ones([2], { requiresGrad: true });
      expect(String(leaf)).toBe('tensor([1., 1.], shape [2], float32, cpu, requiresGrad)');
      expect(String(t.mul(leaf, 2))).toBe('tensor([2., 2.], shape [2], float32, cpu, requiresGrad by mul)');
      const long = t.arange(100, 113);
      expect(String(long).split('\n')[1]).toBe('       shape [13], int64, cpu)');
    });
  });

  it('says that a tensor has been disposed, and does not throw', () => {
    const x = t.ones([2, 3]);
    x.dispose();
    expect(String(x)).toBe('tensor(disposed, shape [2, 3], float32, cpu)');
  });

  it('is what console.log prints, and short where it is deeply nested', () => {
    t.scope(() => {
      const x = t.tensor([1, 2]);
      expect(inspect(x)).toBe(String(x));
      expect(inspect({ x })).toBe(`{ x: ${String(x)} }`);
      expect(inspect({ x }, { depth: 0 })).toBe('{ x: [Tensor [2] float32 cpu] }');
    });
  });

  it('reads little more than it shows', () => {
    t.scope(() => {
      const x = t.zeros([1000, 2000]);
      const read = vi.spyOn(x.device, 'read');
      const bytesRead = () => read.mock.calls.reduce((sum, [, , target]) => sum + target.byteLength, 0);
      expect(values(x)).toContain('...');
      expect(bytesRead()).toBe(4 * 36);
      read.mockClear();
      String(t.select(x, 1, 1999));
      expect(bytesRead()).toBe(4 * 1000);
      read.mockRestore();
    });
  });
});

describe('toArray', () => {
  it('nests as deep as there are dimensions', () => {
    t.scope(() => {
      const x = t.reshape(t.arange(6), [3, 2]);
      expect(x.toArray()).toEqual([
        [0, 1],
        [2, 3],
        [4, 5],
      ]);
      expect(t.transpose(x).toArray()).toEqual([
        [0, 2, 4],
        [1, 3, 5],
      ]);
      expect(t.reshape(t.arange(8), [2, 2, 2]).toArray()).toEqual([
        [
          [0, 1],
          [2, 3],
        ],
        [
          [4, 5],
          [6, 7],
        ],
      ]);
      expect(t.tensor(2.5).toArray()).toBe(2.5);
      expect(t.zeros([2, 0]).toArray()).toEqual([[], []]);
      expect(x.toFlatArray()).toEqual([0, 1, 2, 3, 4, 5]);
    });
  });
});
