import { describe, expect, it } from 'vitest';
import { DTypeError } from '../../src/base/errors.ts';
import {
  type DType,
  byteSize,
  checkDType,
  checkElement,
  checkFilling,
  computeDType,
  dtypes,
  floatingPoint,
  isFloatingPoint,
  isHigherCategory,
  promote,
  promoteWithNumber,
  resultType,
  typedArray,
  viewAs,
} from '../../src/base/dtype.ts';

const none = 'float8' as DType;

describe('the facts of a dtype', () => {
  it.each([
    ['float32', 4, Float32Array],
    ['float16', 2, Uint16Array],
    ['bfloat16', 2, Uint16Array],
    ['float64', 8, Float64Array],
    ['int32', 4, Int32Array],
    ['int64', 8, BigInt64Array],
    ['bool', 1, Uint8Array],
  ] as const)('%s takes %i bytes', (dtype, bytes, array) => {
    expect(byteSize(dtype)).toBe(bytes);
    const zeros = typedArray(dtype, 3);
    expect(zeros).toBeInstanceOf(array);
    expect([zeros.length, zeros.buffer.byteLength]).toEqual([3, 3 * bytes]);
    const view = viewAs(dtype, zeros.buffer as ArrayBuffer, bytes, 2);
    expect(view).toBeInstanceOf(array);
    expect([view.byteOffset, view.length]).toEqual([bytes, 2]);
  });

  it('its category', () => {
    const floats = ['float32', 'float16', 'bfloat16', 'float64'];
    expect(dtypes.filter(isFloatingPoint)).toEqual(floats);
    expect(dtypes.map(floatingPoint)).toEqual([...floats, 'float32', 'float32', 'float32']);
    expect(isHigherCategory('float16', 'int64')).toBe(true);
    expect(isHigherCategory('int32', 'bool')).toBe(true);
    expect(isHigherCategory('float64', 'float16')).toBe(false);
    expect(isHigherCategory('int32', 'float32')).toBe(false);
  });

  it('are asked of a dtype that does not exist in vain', () => {
    expect(() => checkDType('zeros', 'float16')).not.toThrow();
    for (const ask of [
      () => byteSize(none),
      () => isFloatingPoint(none),
      () => promote(none, 'float32'),
      () => promote('float32', none),
      () => checkDType('zeros', none),
    ]) {
      expect(ask).toThrow(DTypeError);
      expect(ask).toThrow(/: there is no dtype float8; take one of float32, .*bool/);
    }
    expect(() => checkDType('zeros', ['float32'] as never)).toThrow('zeros: there is no dtype an array');
    expect(() => checkDType('zeros', 'toString' as never)).toThrow(DTypeError);
  });
});

describe('promotion', () => {
  // torch.promote_types.
  it.each<[DType, DType, DType]>([
    ['bool', 'int32', 'int32'],
    ['bool', 'float16', 'float16'],
    ['int64', 'float16', 'float16'],
    ['int32', 'int64', 'int64'],
    ['float16', 'bfloat16', 'float32'],
    ['float16', 'float32', 'float32'],
    ['bfloat16', 'float64', 'float64'],
    ['bool', 'bool', 'bool'],
    ['float16', 'float16', 'float16'],
  ])('of %s with %s is %s, in either order', (a, b, result) => {
    expect([promote(a, b), promote(b, a)]).toEqual([result, result]);
  });

  // torch.result_type.
  it.each<[DType, number[], DType, number[], DType]>([
    ['float32', [], 'float32', [2], 'float32'],
    ['float16', [2], 'float64', [], 'float16'],
    ['int32', [2], 'float64', [], 'float64'],
    ['int32', [0], 'int64', [], 'int32'],
    ['bool', [1, 1], 'int64', [], 'int64'],
    ['float16', [], 'float64', [], 'float64'],
    ['float16', [2], 'float32', [1, 2], 'float32'],
    ['float32', [1], 'int64', [], 'float32'],
  ])('of %s %j with %s %j is %s, in either order', (dtypeA, shapeA, dtypeB, shapeB, result) => {
    const [a, b] = [
      { dtype: dtypeA, shape: shapeA },
      { dtype: dtypeB, shape: shapeB },
    ];
    expect([resultType(a, b), resultType(b, a)]).toEqual([result, result]);
  });

  it.each<[DType, number, DType]>([
    ['float16', 0.5, 'float16'],
    ['int32', 0.5, 'float32'],
    ['int32', NaN, 'float32'],
    ['int32', 2, 'int32'],
    ['int64', 2, 'int64'],
    ['bool', 2, 'int64'],
    ['bool', 0.5, 'float32'],
  ])('of %s with the number %d is %s', (dtype, value, result) => {
    expect(promoteWithNumber(dtype, value)).toBe(result);
  });

  it.each<[DType[], DType[], DType]>([
    [['float16'], ['float16'], 'float32'],
    [['bfloat16'], [], 'float32'],
    [['int32'], ['int32'], 'int32'],
    [['int32', 'int64'], ['bool'], 'int64'],
    [['bool'], ['float64'], 'float64'],
    [['float32', 'float64'], ['float32'], 'float64'],
  ])('an element-wise op from %j to %j calculates in %s', (inputs, outputs, result) => {
    expect(computeDType(inputs, outputs)).toBe(result);
  });
});

describe('the numbers that an element holds', () => {
  it.each<[DType, number, number]>([
    ['int32', -(2 ** 31), 2 ** 31 - 1],
    ['int64', -(2 ** 63), 2 ** 63 - 1024],
  ])('of %s reach from %d to %d', (dtype, least, most) => {
    for (const value of [least, 0, most]) expect(() => checkElement('full', dtype, value)).not.toThrow();
    const beyond = dtype === 'int32' ? [least - 1, most + 1] : [least - 2048, most + 1024];
    for (const value of [...beyond, 0.5, NaN, -Infinity]) {
      const attempt = () => checkElement('full', dtype, value);
      expect(attempt).toThrow(DTypeError);
      expect(attempt).toThrow(`full: ${value} is no ${dtype}, which holds whole numbers`);
    }
  });

  it('of other dtypes may be any, but numbers', () => {
    for (const dtype of ['float16', 'float64', 'bool'] as const) {
      for (const value of [0.5, NaN, -Infinity, 1e300]) checkElement('full', dtype, value);
      expect(() => checkElement('full', dtype, '1' as never)).toThrow(
        'full: takes numbers, not the text "1"',
      );
    }
  });

  it.each<[DType, number]>([
    ['float32', 3.4028234663852886e38],
    ['float16', 65504],
    ['bfloat16', 3.3895313892515355e38],
    ['float64', Number.MAX_VALUE],
  ])('a filling of %s goes up to %d, and is infinite only where that is asked for', (dtype, largest) => {
    for (const value of [largest, -largest, Infinity, -Infinity, NaN]) checkFilling('full', dtype, value);
    if (dtype === 'float64') return;
    for (const value of [largest * (1 + 2 ** -52), -2 * largest]) {
      expect(() => checkFilling('full', dtype, value)).toThrow(DTypeError);
    }
  });

  it('a filling is an element', () => {
    expect(() => checkFilling('full', 'int32', 0.5)).toThrow(DTypeError);
    checkFilling('full', 'int64', 2 ** 62);
  });
});
