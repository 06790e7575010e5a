import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Operand, Tensor } from '../../../src/index.ts';
import { normalCdf } from '../../../src/tensor/random/normal-cdf.ts';
import { describeOnDevices } from '../../op-cases/support/devices.ts';

const [nan, inf] = [NaN, Infinity];

// Values and gradients are PyTorch's.
describeOnDevices((open) => {
  const of = (values: t.NestedNumbers, dtype: DType = 'float32') =>
    t.tensor(values, { dtype, device: open() });
  const bools = (values: readonly number[]) => of(values, 'bool');

  /** The gradients of the sum of `fn`, or of its elements weighted by `g`. */
  function gradients(
    fn: (...x: Tensor[]) => Tensor,
    inputs: readonly (readonly number[])[],
    g?: readonly number[],
  ): number[][] {
    return t.scope(() => {
      const leaves = inputs.map((values) => of(values).requiresGrad_());
      const y = fn(...leaves);
      y.backward(g ? of(g) : t.onesLike(y));
      return leaves.map((leaf) => leaf.grad!.toFlatArray());
    });
  }

  it('where passes -0 and NaN on, and picks from numbers and broadcasts', () => {
    for (const dtype of ['float32', 'float64', 'float16', 'bfloat16'] as const) {
      t.scope(() => {
        const [c, x] = [bools([1, 1, 0]), of([-0, nan, 3], dtype)];
        expect(t.where(c, x, 5).toFlatArray()).toEqual([-0, nan, 5]);
        expect(t.where(c, 2, t.where(c, 7, of([[-0], [1]], dtype))).toFlatArray()).toEqual([
          2, 2, -0, 2, 2, 1,
        ]);
      });
    }
    const far = t.fromTypedArray(BigInt64Array.of(2n ** 62n + 1n), [1], { device: open() });
    expect(t.where(bools([1]), far, 0).toTypedArray()).toEqual(BigInt64Array.of(2n ** 62n + 1n));
  });

  const gives = (fn: () => Tensor, dtype: DType, values: readonly number[]) =>
    t.scope(() => {
      const y = fn();
      expect([y.dtype, y.toFlatArray()]).toEqual([dtype, values]);
    });

  describe('bools', () => {
    const a = () => bools([1, 1, 0, 0]);
    const b = () => bools([1, 0, 1, 0]);
    it.each<[string, (a: Operand, b: Operand) => Tensor, number[]]>([
      ['add', t.add, [1, 1, 1, 0]],
      ['mul', t.mul, [1, 0, 0, 0]],
      ['maximum', t.maximum, [1, 1, 1, 0]],
      ['minimum', t.minimum, [1, 0, 0, 0]],
      ['equal', t.equal, [1, 0, 0, 1]],
      ['notEqual', t.notEqual, [0, 1, 1, 0]],
      ['less', t.less, [0, 0, 1, 0]],
      ['lessEqual', t.lessEqual, [1, 0, 1, 1]],
      ['greater', t.greater, [0, 1, 0, 0]],
      ['greaterEqual', t.greaterEqual, [1, 1, 0, 1]],
    ])('%s stays bool', (_, fn, values) => gives(() => fn(a(), b()), 'bool', values));

    it('are divided as numbers', () => gives(() => t.div(a(), b()), 'float32', [1, inf, 0, nan]));

    it('with numbers are integers, with their comparisons', () => {
      const x = () => bools([1, 0]);
      gives(() => t.add(x(), 2), 'int64', [3, 2]);
      gives(() => t.mul(3, x()), 'int64', [3, 0]);
      gives(() => t.equal(x(), 2), 'bool', [0, 0]);
      gives(() => t.equal(x(), 1), 'bool', [1, 0]);
      gives(() => t.less(x(), 2), 'bool', [1, 1]);
      gives(() => t.less(2, x()), 'bool', [0, 0]);
      gives(() => t.greater(x(), 0.5), 'bool', [1, 0]);
      gives(() => t.pow(x(), 2), 'int64', [1, 0]);
    });

    it('are chosen from', () => {
      gives(() => t.where(a(), b(), t.logicalNot(b())), 'bool', [1, 0, 0, 1]);
      gives(() => t.where(bools([1, 0]), bools([1, 1]), 2), 'int64', [1, 2]);
      gives(() => t.where(bools([1, 0]), 0.5, bools([1, 1])), 'float32', [0.5, 1]);
    });

    it('are added in place', () => {
      gives(
        () => {
          const x = a();
          t.addInPlace(x, b());
          return x;
        },
        'bool',
        [1, 1, 1, 0],
      );
    });

    it('have no difference, sign, power or positive part', () => {
      for (const fn of [
        () => t.sub(a(), b()),
        () => t.sub(a(), 2),
        () => t.sub(2, a()),
        () => t.sub(of([1, 2, 3, 4]), a()),
        () => t.neg(a()),
        () => t.relu(a()),
        () => t.pow(a(), b()),
      ]) {
        t.scope(() => expect(fn).toThrow(t.DTypeError));
      }
    });
  });

  describe('integers', () => {
    it('wrap around', () => {
      const [most, least] = [2 ** 31 - 1, -(2 ** 31)];
      gives(() => t.add(of([most, least], 'int32'), 1), 'int32', [least, least + 1]);
      gives(() => t.mul(of([most, least], 'int32'), 2), 'int32', [-2, 0]);
      gives(() => t.sub(of([least], 'int32'), of([1], 'int32')), 'int32', [most]);
      gives(() => t.neg(of([least], 'int32')), 'int32', [least]);
      gives(() => t.mul(of([2 ** 62], 'int64'), of([2], 'int64')), 'int64', [-(2 ** 63)]);
    });

    it('are divided in float32', () => {
      gives(() => t.div(of([7, -7, 1, 0], 'int32'), of([2, 2, 0, 0], 'int32')), 'float32', [
        3.5,
        -3.5,
        inf,
        nan,
      ]);
      gives(() => t.div(1, of([4], 'int64')), 'float32', [0.25]);
    });

    it.each<DType>(['int32', 'int64'])('%s has a positive part', (dtype) =>
      gives(() => t.relu(of([-3, 0, 7, 2 ** 30], dtype)), dtype, [0, 0, 7, 2 ** 30]),
    );

    it('are raised exactly, modulo 2^32 and 2^64', () => {
      const power = (a: Operand, b: Operand) =>
        t.scope(() => {
          const y = t.pow(a, b);
          return [y.dtype, ...Array.from(y.toTypedArray() as BigInt64Array, String)];
        });
      expect(
        power(of([7, 3, -2, 1, -1, 2, 0, 0, -1], 'int64'), of([22, 50, 63, -1, -3, -1, 0, 5, 2], 'int64')),
      ).toEqual([
        'int64',
        '3909821048582988049',
        '6048575297968530377',
        '-9223372036854775808',
        '1',
        '-1',
        '0',
        '1',
        '0',
        '1',
      ]);
      expect(power(of([3, 7, -3], 'int32'), 50)).toEqual(['int32', '-794958903', '-576859983', '-794958903']);
      expect(power(2, of([-1, 0, 40], 'int64'))).toEqual(['int64', '0', '1', '1099511627776']);
      expect(power(of([[2], [3]], 'int32'), of([1, 2], 'int64'))).toEqual(['int64', '2', '4', '3', '9']);
      gives(() => t.pow(of([4, 9], 'int64'), 0.5), 'float32', [2, 3]);
      gives(() => t.pow(t.zeros([0, 2], { dtype: 'int64', device: open() }), 2), 'int64', []);
      t.scope(() => expect(() => t.pow(of([2], 'int64'), -1)).toThrow('negative integer power -1'));
    });

    it('refuse numbers that they cannot hold', () => {
      t.scope(() => {
        const x = of([1], 'int32');
        for (const fn of [
          t.add,
          t.less,
          t.maximum,
          t.pow,
          (a: Operand, b: Operand) => t.where(bools([1]), a, b),
        ]) {
          expect(() => fn(x, 2 ** 31)).toThrow('2147483648 is no int32');
        }
        expect(() => t.add(of([1], 'int64'), 2 ** 63)).toThrow('no int64');
        expect(t.add(of([0], 'int64'), -(2 ** 63)).toFlatArray()).toEqual([-(2 ** 63)]);
        expect(t.less(x, inf).toFlatArray()).toEqual([1]);
      });
    });

    it('take no floats in place', () => {
      t.scope(() => {
        const x = of([1, 2], 'int64');
        expect(() => t.addInPlace(x, of([0.5, 0.5]))).toThrow(
          'add_: float32 cannot be added in place to int64',
        );
        expect(() => t.addInPlace(bools([1]), of([1], 'int32'))).toThrow(t.DTypeError);
        expect(() => t.fillInPlace(x, 0.5)).toThrow('fillInPlace: 0.5 is no int64');
        expect(() => t.fillInPlace(x, nan)).toThrow(t.DTypeError);
        t.addInPlace(x, of([2 ** 31 - 1, -5], 'int32'));
        expect(x.toFlatArray()).toEqual([2 ** 31, -3]);
      });
    });
  });

  it('adds in place in the wider dtype', () => {
    t.scope(() => {
      const x = of([1], 'float16');
      // 2^-11 + 2^-20 is over half a unit in the last place of 1; rounded to float16 first it is just half.
      t.addInPlace(x, of([2 ** -11 + 2 ** -23], 'float32'));
      expect(x.toFlatArray()).toEqual([1 + 2 ** -10]);
      const y = of([1]);
      t.addInPlace(y, of([2 ** -24 + 2 ** -50], 'float64'));
      expect(y.toFlatArray()).toEqual([1 + 2 ** -23]);
    });
  });

  describe.each<DType>(['float32', 'bfloat16', 'float64'])('special values of %s', (dtype) => {
    const x = (values: readonly number[]) => of(values, dtype);
    it('in relu', () =>
      gives(() => t.relu(x([-inf, inf, nan, -1, -0, 0, 2])), dtype, [0, inf, nan, 0, -0, 0, 2]));
    it('in maximum and minimum: NaN wins on either side', () => {
      const [a, b] = [
        [nan, 1, inf, -inf, 2],
        [1, nan, nan, 3, 1],
      ] as const;
      gives(() => t.maximum(x(a), x(b)), dtype, [nan, nan, nan, 3, 2]);
      gives(() => t.minimum(x(a), x(b)), dtype, [nan, nan, nan, -inf, 1]);
      gives(() => t.maximum(x(a), 1), dtype, [nan, 1, inf, 1, 2]);
      gives(() => t.minimum(nan, x([1, inf])), dtype, [nan, nan]);
    });
    it('in comparisons: NaN equals nothing', () => {
      const [a, b] = [x([nan, nan, inf, -inf, -0]), x([nan, 1, inf, inf, 0])];
      gives(() => t.equal(a, b), 'bool', [0, 0, 1, 0, 1]);
      gives(() => t.notEqual(a, b), 'bool', [1, 1, 0, 1, 0]);
      gives(() => t.less(a, b), 'bool', [0, 0, 0, 1, 0]);
      gives(() => t.greaterEqual(a, b), 'bool', [0, 0, 1, 0, 1]);
    });
    it('in casts to bool', () =>
      gives(() => t.cast(x([nan, 0, -0, 0.5, -inf]), 'bool'), 'bool', [1, 0, 0, 1, 1]));
  });

  describe('gradients', () => {
    it('of relu are chosen, not multiplied', () => {
      expect(gradients((x) => t.pow(t.relu(x), 0.5), [[-1, 0, 4, nan]])).toEqual([[0, 0, 0.25, nan]]);
      expect(gradients(t.relu, [[-1, 0, 1, nan]], [inf, nan, inf, 2])).toEqual([[0, 0, inf, 2]]);
    });

    it('of maximum and minimum: half each where equal, all of it to both where one is NaN', () => {
      const [a, b] = [
        [-1, 0, 2, nan, 1, 1],
        [0, 0, 0, 1, nan, 3],
      ] as const;
      expect(gradients(t.maximum, [a, b])).toEqual([
        [0, 0.5, 1, 1, 1, 0],
        [1, 0.5, 0, 1, 1, 1],
      ]);
      expect(gradients(t.minimum, [a, b])).toEqual([
        [1, 0.5, 0, 1, 1, 1],
        [0, 0.5, 1, 1, 1, 0],
      ]);
      expect(gradients((x) => t.maximum(x, 0), [[-1, 0, 2]], [inf, 4, inf])).toEqual([[0, 2, inf]]);
      expect(gradients((x) => t.minimum(0, x), [[-1, 0, 2]], [inf, 4, nan])).toEqual([[inf, 2, 0]]);
    });

    it('of pow at 0 are 0 where PyTorch has it so', () => {
      const [a, b] = [
        [0, 0, 0, 2, -1],
        [0, 2, -1, 3, 2],
      ] as const;
      const [byBase, byExponent] = gradients(t.pow, [a, b]);
      expect(byBase).toEqual([0, 0, -inf, 12, -2]);
      expect(byExponent!.slice(0, 3)).toEqual([0, 0, -inf]);
      expect(byExponent![3]).toBeCloseTo(8 * Math.LN2, 5);
      expect(byExponent![4]).toBeNaN();
      expect(gradients((x) => t.pow(x, 0), [[-1, 0, 2, nan]])).toEqual([[0, 0, 0, 0]]);
      expect(gradients((x) => t.pow(x, 2), [[-1, 0, 2]])).toEqual([[-2, 0, 4]]);
      expect(gradients((x) => t.pow(0, x), [[2, 0, -1, nan]])).toEqual([[0, 0, -inf, nan]]);
    });

    it('of pow are NaN where the power is, also for an exponent that vanishes next to 1', () => {
      for (const b of [0.5, 1e-10]) {
        expect(gradients((x) => t.pow(x, b), [[-2, -inf]])[0]![0]).toBeNaN();
        expect(gradients(t.pow, [[-2], [b]])[0]).toEqual([nan]);
      }
      expect(gradients((x) => t.pow(x, 1e-10), [[-inf]])[0]![0]).toBeCloseTo(0, 9);
      expect(gradients((x) => t.pow(x, 3), [[-2]])).toEqual([[12]]);
    });

    it('of rsqrt and pow do not overflow on the way in low precision', () => {
      t.scope(() => {
        const x = of([2 ** -14, 2 ** -14], 'float16').requiresGrad_();
        t.rsqrt(x).backward(of([0, 2 ** -10], 'float16'));
        expect(x.grad!.toFlatArray()).toEqual([-0, -1024]);
        const base = x.detach().requiresGrad_();
        t.pow(base, -1).backward(of([0, -(2 ** -20)], 'float16'));
        expect(base.grad!.toFlatArray()).toEqual([-0, 256]);
      });
    });

    it('of silu and gelu are rounded once in low precision', () => {
      const slope = { h: 1e-5, of: (fn: (x: number) => number, x: number) => fn(x + 1e-5) - fn(x - 1e-5) };
      const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
      t.scope(() => {
        for (const [fn, exact] of [
          [t.silu, (x: number) => x * sigmoid(x)],
          [t.gelu, (x: number) => x * normalCdf(x)],
        ] as const) {
          const x = of([-14, -9, -5, -1.25, -0.75, 2], 'float16').requiresGrad_();
          const y = fn(x);
          y.backward(t.onesLike(y));
          x.grad!.toFlatArray().forEach((gradient, i) => {
            const expected = slope.of(exact, x.toFlatArray()[i]!) / (2 * slope.h);
            // A rounding of the result, and 2^-24 for float32's 1 + erf and differences.
            expect(Math.abs(gradient - expected)).toBeLessThanOrEqual(
              2 ** -11 * Math.abs(expected) + 2 ** -24,
            );
          });
        }
      });
    });

    it('of pow take the logarithm in the wider dtype', () => {
      t.scope(() => {
        const a = of([3], 'bfloat16');
        const b = of([2], 'float64').requiresGrad_();
        t.pow(a, b).backward(of([1], 'float64'));
        expect(b.grad!.item()).toBeCloseTo(9 * Math.log(3), 14);
      });
    });

    it('of div divide before they multiply', () => {
      // -g · (a / b) / b, where g · (a / b) is beyond float32.
      expect(gradients(t.div, [[1e30], [1e10]], [1e25])[1]![0]! / -1e35).toBeCloseTo(1, 6);
    });

    it('of where leave the other side alone', () => {
      const g = gradients(
        (a, b) => t.where(bools([1, 0]), a!, b!),
        [
          [1, 2],
          [3, 4],
        ],
        [inf, nan],
      );
      expect(g).toEqual([
        [inf, 0],
        [0, nan],
      ]);
    });

    it('end at integers and bools', () => {
      t.scope(() => {
        const x = of([1.5, 2.5]).requiresGrad_();
        for (const dtype of ['int32', 'int64', 'bool'] as const)
          expect(t.cast(x, dtype).requiresGrad).toBe(false);
        for (const y of [t.greater(x, 1), t.equal(x, x), t.logicalNot(t.cast(x, 'bool'))]) {
          expect(y.requiresGrad).toBe(false);
        }
        expect(t.cast(x, 'float64').requiresGrad).toBe(true);
        t.sum(t.add(x, t.cast(t.cast(x, 'int32'), 'float32'))).backward();
        expect(x.grad!.toFlatArray()).toEqual([1, 1]);
      });
    });
  });
});

describe('functions in float64 on the CPU', () => {
  it('are right to a unit in the last place, also near their zeros', () => {
    const of = (x: number) => t.tensor([x], { dtype: 'float64' });
    t.scope(() => {
      // PyTorch's results.
      expect(t.cos(of(-1.5461066674477648)).item()).toBe(0.02468715103946104);
      expect(t.sin(of(3.141592653589793)).item()).toBe(1.2246467991473532e-16);
      expect(t.tanh(of(1e-300)).item()).toBe(1e-300);
    });
  });
});

describe('invalid operands', () => {
  const x = t.tensor([1, 2]);
  it.each<[string, () => unknown, string]>([
    ['a text', () => t.add(x, 'a' as never), 'add: takes tensors and numbers, not the text "a".'],
    ['undefined', () => t.mul(undefined as never, x), 'mul: takes tensors and numbers, not undefined.'],
    ['null beside a number', () => t.sub(2, null as never), 'sub: takes tensors and numbers, not null.'],
    ['a list', () => t.less([1, 2] as never, 1), 'less: takes tensors and numbers, not an array.'],
    ['two numbers', () => t.maximum(1, 2), 'maximum: one operand must be a tensor, got the numbers 1 and 2'],
    ['two numbers of pow', () => t.pow(2, 3), 'pow: one operand must be a tensor'],
    ['two fractions of pow', () => t.pow(2.5, 3), 'pow: one operand must be a tensor'],
    [
      'undefined of pow',
      () => t.pow(x, undefined as never),
      'pow: takes tensors and numbers, not undefined.',
    ],
    ['a number alone', () => t.relu(5 as never), 'relu: takes tensors, not 5;'],
    ['an object', () => t.where({} as never, x, x), 'where: the condition must be bool, not an object;'],
    ['a condition of floats', () => t.where(x, x, x), 'where: the condition must be bool, not float32;'],
    [
      'no alternative',
      () => t.where(t.greater(x, 1), x, undefined as never),
      'where: takes tensors and numbers',
    ],
    ['two numbers of where', () => t.where(t.greater(x, 1), 1, 2), 'got the numbers 1 and 2; use full()'],
    [
      'a bound that an integer dtype cannot hold',
      () => t.clamp(t.zeros([2], { dtype: 'int32' }), { max: 1e10 }),
      'clamp: 10000000000 is no int32',
    ],
    ['a text in place', () => t.addInPlace(x, 'a' as never), 'addInPlace: takes tensors, not the text "a"'],
    ['a number to copy', () => t.copyInPlace(x, 5 as never), 'copyInPlace: takes tensors, not 5'],
    [
      'a text to fill with',
      () => t.fillInPlace(x, 'a' as never),
      'fillInPlace: takes numbers, not the text "a"',
    ],
    [
      'an unknown dtype',
      () => t.cast(x, 'half' as never),
      'cast: there is no dtype half; take one of float32',
    ],
    ['a cast of nothing', () => t.cast(undefined as never, 'int32'), 'cast: takes tensors, not undefined'],
  ])('%s', (_, fn, message) => {
    expect(fn).toThrow(t.DTypeError);
    expect(fn).toThrow(message);
  });
});
