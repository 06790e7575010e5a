import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType } from '../../../src/index.ts';
import { describeOnDevices } from '../../op-cases/support/devices.ts';

describeOnDevices((open) => {
  it.each<[DType, number, number]>([
    ['float32', 0.1, Math.fround(0.1)],
    ['float16', 1 + 2 ** -11, 1],
    ['bfloat16', 1 + 2 ** -8 + 2 ** -12, 1 + 2 ** -7],
    ['float64', 0.1, 0.1],
    ['int32', -(2 ** 31), -(2 ** 31)],
    ['int64', -(2 ** 63), -(2 ** 63)],
    ['int64', 2 ** 53, 2 ** 53],
    ['bool', 2, 1],
    ['bool', NaN, 1],
    ['bool', 0, 0],
  ])('%s holds %d as %d, filled or listed', (dtype, value, held) => {
    t.scope(() => {
      const options = { dtype, device: open() };
      expect(t.full([3], value, options).toFlatArray()).toEqual([held, held, held]);
      expect(t.tensor([value], options).toFlatArray()).toEqual([held]);
    });
  });

  it.each<[DType, number, number]>([
    ['float16', 65504, 65505],
    ['bfloat16', 2 ** 127 * (2 - 2 ** -7), 3.4e38],
    ['float32', 2 ** 127 * (2 - 2 ** -23), -1e39],
  ])(
    '%s is filled with %d and not with %d, which listed is rounded to an infinity',
    (dtype, most, beyond) => {
      t.scope(() => {
        const options = { dtype, device: open() };
        expect(t.full([1], most, options).item()).toBe(most);
        const x = t.full([1], Infinity, options);
        const chosen = t.greater(x, 0);
        for (const fill of [
          () => t.full([1], beyond, options),
          () => t.fillInPlace(x, beyond),
          () => t.where(chosen, x, beyond),
        ]) {
          expect(fill).toThrow(t.DTypeError);
          expect(fill).toThrow(`${beyond} is beyond ${dtype}, whose largest value is ${most}`);
        }
        expect(x.item()).toBe(Infinity);
        expect(Math.abs(t.tensor([2 * beyond], options).item())).toBe(Infinity);
      });
    },
  );

  it.each<[DType, number]>([
    ['int32', 0.5],
    ['int32', NaN],
    ['int32', Infinity],
    ['int32', 2 ** 31],
    ['int32', -(2 ** 31) - 1],
    ['int64', 0.5],
    ['int64', NaN],
    ['int64', 2 ** 63],
  ])('%s does not hold %d', (dtype, value) => {
    t.scope(() => {
      const options = { dtype, device: open() };
      const x = t.zeros([2], options);
      const message = `${value} is no ${dtype}, which holds whole numbers from -2^`;
      expect(() => t.full([2], value, options)).toThrow(`full: ${message}`);
      expect(() => t.tensor([0, value], options)).toThrow(`tensor: ${message}`);
      expect(() => t.fillInPlace(x, value)).toThrow(`fillInPlace: ${message}`);
      expect(() => t.full([0], value, options)).toThrow(t.DTypeError);
      expect(x.toFlatArray()).toEqual([0, 0]);
    });
  });

  it('makes what is asked for', () => {
    t.scope(() => {
      const device = open();
      expect(t.ones([2], { device, dtype: 'int64' }).toFlatArray()).toEqual([1, 1]);
      const zeros = t.zeros([2, 1], { device, requiresGrad: true });
      expect([zeros.requiresGrad, zeros.toFlatArray()]).toEqual([true, [0, 0]]);
      const like = t.onesLike(t.zeros([2], { device, dtype: 'float16' }));
      expect([like.dtype, like.toFlatArray()]).toEqual(['float16', [1, 1]]);
      expect(t.zerosLike(like).toFlatArray()).toEqual([0, 0]);
      expect(t.empty([3, 0], { device }).shape).toEqual([3, 0]);
      expect(t.full([], 7, { device }).item()).toBe(7);
      const listed = t.tensor([[1, 2, 3]], { device, dtype: 'int32', requiresGrad: false });
      expect([listed.dtype, listed.shape, listed.toFlatArray()]).toEqual(['int32', [1, 3], [1, 2, 3]]);
    });
  });

  it('reads bytes of bools as true or false', () => {
    t.scope(() => {
      const x = t.fromTypedArray(Uint8Array.of(0, 2, 255), [3], { device: open() });
      expect([x.dtype, x.toFlatArray()]).toEqual(['bool', [0, 1, 1]]);
      expect(t.equal(x, t.tensor([1, 1, 1], { dtype: 'bool', device: open() })).toFlatArray()).toEqual([
        0, 1, 1,
      ]);
    });
  });
});

describe('arange', () => {
  it.each<[number[], DType, number[]]>([
    [[3], 'int64', [0, 1, 2]],
    [[0], 'int64', []],
    [[2, 5], 'int64', [2, 3, 4]],
    [[1, 8, 3], 'int64', [1, 4, 7]],
    [[1, 7, 3], 'int64', [1, 4]],
    [[5, 0, -2], 'int64', [5, 3, 1]],
    [[5, 1, -2], 'int64', [5, 3]],
    [[5, 5, -1], 'int64', []],
    [[0, 1, 0.25], 'float32', [0, 0.25, 0.5, 0.75]],
    [[0.5, 3], 'float32', [0.5, 1.5, 2.5]],
  ])('%j', (arguments_, dtype, values) => {
    const [start, end, step] = arguments_;
    t.scope(() => {
      const x = t.arange(start!, end, step);
      expect([x.dtype, x.shape, x.toFlatArray()]).toEqual([dtype, [values.length], values]);
    });
  });

  it('refuses steps away from the end', () => {
    expect(() => t.arange(0, 5, -1)).toThrow('arange: steps of -1 from 0 lead away from 5');
    expect(() => t.arange(-2)).toThrow(t.ShapeError);
  });

  it('takes a dtype, and requires gradients', () => {
    t.scope(() => {
      const x = t.arange(0, 3, 1, { dtype: 'float32', requiresGrad: true });
      expect([x.dtype, x.requiresGrad, x.toFlatArray()]).toEqual(['float32', true, [0, 1, 2]]);
      expect(() => t.arange(0, 2, 0.5, { dtype: 'int32' })).toThrow('arange: 0.5 is no int32');
    });
  });

  it.each([[0, 1, 0], [NaN], [0, NaN], [0, Infinity], [0, 5, NaN], [{}], ['3']])(
    'refuses %j',
    (...arguments_) => {
      expect(() => t.arange(...(arguments_ as unknown as [number]))).toThrow(
        'all must be finite numbers, and the step not 0',
      );
    },
  );

  it('refuses more elements than a list holds', () => {
    expect(() => t.arange(2 ** 32)).toThrow('4294967296 elements are too many');
  });
});

describe('invalid shapes', () => {
  it.each<[unknown, string]>([
    [[NaN], '[NaN] is no shape'],
    [[-1], '[-1] is no shape'],
    [[2, 1.5], '[2, 1.5] is no shape'],
    [['2'], '[2] is no shape'],
    [[2 ** 30, 2 ** 30], 'has more elements than any memory'],
    [[2 ** 60], 'has more elements than any memory'],
    [5, 'takes a list of whole numbers such as [2, 3], not 5'],
    [undefined, 'takes a list of whole numbers such as [2, 3], not undefined'],
  ])('%j', (shape, message) => {
    for (const make of [t.zeros, t.ones, t.empty, (s: t.Shape) => t.full(s, 1)]) {
      expect(() => make(shape as t.Shape)).toThrow(t.ShapeError);
      expect(() => make(shape as t.Shape)).toThrow(message);
    }
    expect(() => t.fromTypedArray(new Float32Array(2), shape as t.Shape)).toThrow(message);
  });

  it('takes a length of 0 next to any other', () => {
    t.scope(() => expect(t.zeros([2 ** 40, 0, 2 ** 40]).size).toBe(0));
  });
});

describe('nested lists', () => {
  it.each<[unknown, number[]]>([
    [5, []],
    [[], [0]],
    [
      [[], []],
      [2, 0],
    ],
    [
      [[[1]], [[2]]],
      [2, 1, 1],
    ],
    [
      [Float32Array.of(1, 2), [3, 4]],
      [2, 2],
    ],
  ])('%j has the shape %j', (values, shape) => {
    t.scope(() => expect(t.tensor(values as t.NestedNumbers).shape).toEqual(shape));
  });

  it.each([[[[1, 2], [3]]], [[[1], [2, 3]]], [[1, [2]]], [[[1], 2]], [[[1], []]], [[[], [1]]]])(
    '%j is ragged',
    (values) => {
      expect(() => t.tensor(values as t.NestedNumbers)).toThrow(t.ShapeError);
      expect(() => t.tensor(values as t.NestedNumbers)).toThrow('are ragged');
    },
  );

  it('that hold themselves are refused', () => {
    const ring: unknown[] = [];
    ring.push(ring);
    expect(() => t.tensor(ring as never)).toThrow('hold themselves');
    expect(() => t.tensor([[1], ring as never])).toThrow(t.ShapeError);
  });

  it.each<[unknown, string]>([
    ['a', 'the text "a"'],
    [[1, 'a'], 'the text "a"'],
    [[[1], ['a']], 'the text "a"'],
    [[undefined], 'undefined'],
    [null, 'null'],
    [[1n], '1n'],
    [[{}], 'an object'],
    [[true], 'true'],
  ])('%s holds what is no number', (values, named) => {
    expect(() => t.tensor(values as t.NestedNumbers)).toThrow(t.DTypeError);
    expect(() => t.tensor(values as t.NestedNumbers)).toThrow(
      `tensor: takes arrays of numbers, not of ${named}.`,
    );
  });
});

describe('options', () => {
  const makers: [string, (options: t.TensorOptions) => unknown][] = [
    ['empty', (options) => t.empty([1], options)],
    ['full', (options) => t.full([1], 1, options)],
    ['zeros', (options) => t.zeros([1], options)],
    ['ones', (options) => t.ones([1], options)],
    ['arange', (options) => t.arange(0, 1, 1, options)],
    ['tensor', (options) => t.tensor([1], options)],
    ['fromTypedArray', (options) => t.fromTypedArray(Float32Array.of(1), [1], options)],
  ];

  it.each(makers)('of %s are named when they do not exist', (name, make) => {
    expect(() => make({ dtyp: 'int32' } as never)).toThrow(
      `${name}: there is no option "dtyp"; did you mean "dtype"? It takes dtype, device, requiresGrad.`,
    );
    expect(() => make(7 as never)).toThrow(`${name}: options are an object`);
    expect(() => make({ dtype: 'float' } as never)).toThrow(
      `${name}: there is no dtype float; take one of float32`,
    );
    expect(() => make({ dtype: 'toString' } as never)).toThrow(t.DTypeError);
    expect(() => make({ dtype: 'int64', requiresGrad: true } as never)).toThrow(t.DTypeError);
  });
});

describe('fromTypedArray', () => {
  it('takes the dtype of the array', () => {
    const arrays: [t.TypedArray, DType][] = [
      [Float32Array.of(1), 'float32'],
      [Float64Array.of(1), 'float64'],
      [Int32Array.of(1), 'int32'],
      [BigInt64Array.of(1n), 'int64'],
      [Uint8Array.of(1), 'bool'],
    ];
    for (const [data, dtype] of arrays) t.scope(() => expect(t.fromTypedArray(data, [1]).dtype).toBe(dtype));
    t.scope(() => {
      const half = t.fromTypedArray(Uint16Array.of(0x3c00), [1], { dtype: 'float16' });
      expect(half.toFlatArray()).toEqual([1]);
    });
  });

  it.each<[unknown, object | undefined, string]>([
    [Uint16Array.of(1), undefined, 'may be float16 or bfloat16'],
    [[1], undefined, "takes a typed array of a dtype's elements, not an array"],
    [undefined, undefined, "takes a typed array of a dtype's elements, not undefined"],
    [undefined, { dtype: 'float32' }, 'float32 elements come as Float32Array, not as undefined'],
    [Float32Array.of(1), { dtype: 'int32' }, 'int32 elements come as Int32Array, not as Float32Array'],
    [Int16Array.of(1), undefined, 'takes a typed array'],
  ])('refuses %j with %j', (data, options, message) => {
    expect(() => t.fromTypedArray(data as t.TypedArray, [1], options)).toThrow(t.DTypeError);
    expect(() => t.fromTypedArray(data as t.TypedArray, [1], options)).toThrow(message);
  });

  it('refuses what does not fill the shape', () => {
    expect(() => t.fromTypedArray(Float32Array.of(1, 2, 3), [2])).toThrow('3 elements do not fill [2]');
  });
});

describe('random numbers', () => {
  it.each<[string, (options: t.RandomOptions) => unknown]>([
    ['uniform', (options) => t.uniform([1], options)],
    ['randn', (options) => t.randn([1], options)],
    ['truncatedNormal', (options) => t.truncatedNormal([1], options)],
    ['randint', (options) => t.randint(0, 2, [1], options)],
  ])('of %s are named when they do not exist', (name, make) => {
    expect(() => make({ seeds: 1 } as never)).toThrow(
      `${name}: there is no option "seeds"; did you mean "seed"?`,
    );
  });
});

describe('fromBytes', () => {
  it.each<[t.DType, t.TypedArray]>([
    ['float32', Float32Array.of(1.5, -2, NaN)],
    ['float64', Float64Array.of(1e300, 0, 3)],
    ['bfloat16', Uint16Array.of(0x3f80, 0, 1)],
    ['int64', BigInt64Array.of(1n, -2n, 3n)],
    ['bool', Uint8Array.of(1, 0, 1)],
  ])('reads %s, wherever its bytes begin', (dtype, values) => {
    const own = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    for (const start of [0, 1, 8]) {
      for (const all of [new Uint8Array(start + own.length), Buffer.alloc(start + own.length)]) {
        all.set(own, start);
        t.scope(() => {
          const x = t.fromBytes(all.subarray(start), [3, 1], { dtype });
          expect(x.shape).toEqual([3, 1]);
          expect(x.toTypedArray()).toEqual(values);
        });
      }
    }
  });

  it('makes a true of any byte but 0, and refuses what does not fill the shape', () => {
    t.scope(() => {
      expect(t.fromBytes(Uint8Array.of(7, 0), [2], { dtype: 'bool' }).toArray()).toEqual([1, 0]);
      expect(t.fromBytes(new Uint8Array(0), [0, 3]).shape).toEqual([0, 3]);
      expect(() => t.fromBytes(new Uint8Array(7), [2])).toThrow(
        'fromBytes: 7 bytes do not fill [2] of float32',
      );
      expect(() => t.fromBytes(new Uint8Array(4), [2], { requiresGrad: true })).toThrow(t.ShapeError);
    });
  });
});
