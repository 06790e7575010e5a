import { describe, expect, it } from 'vitest';
import { RooflineError } from '../../src/base/errors.ts';
import {
  checkCount,
  checkFlag,
  checkFunction,
  checkNumber,
  checkObject,
  checkText,
  describeValue,
} from '../../src/base/check-value.ts';

it.each<[unknown, string]>([
  ['a', 'the text "a"'],
  [() => 1, 'a function'],
  [3n, '3n'],
  [[1], 'an array'],
  [{}, 'an object'],
  [null, 'null'],
  [undefined, 'undefined'],
  [NaN, 'NaN'],
  [Symbol('s'), 'Symbol(s)'],
])('%o is described as %s', (value, words) => {
  expect(describeValue(value)).toBe(words);
});

type Check = (value: never) => void;

describe.each<[name: string, code: string, check: Check, allowed: unknown[], refused: unknown[]]>([
  [
    'checkNumber',
    'RANGE',
    (value) => checkNumber('f', 'x', value),
    [0, -1.5],
    [NaN, Infinity, '1', null, 1n],
  ],
  [
    'checkNumber with a range',
    'RANGE',
    (value) => checkNumber('f', 'x', value, 'positive', (x) => x > 0),
    [1, Infinity],
    [0, NaN, '1', true],
  ],
  ['checkCount', 'RANGE', (value) => checkCount('f', 'x', value), [0, 7], [-1, 0.5, 2 ** 53, '1']],
  ['checkCount from one', 'RANGE', (value) => checkCount('f', 'x', value, 1), [1, 7], [0, NaN]],
  ['checkFlag', 'ARGUMENT', (value) => checkFlag('f', 'x', value), [true, false], [0, 'true', undefined]],
  ['checkText', 'ARGUMENT', (value) => checkText('f', 'x', value), ['', 'a'], [0, null, ['a']]],
  ['checkObject', 'ARGUMENT', (value) => checkObject('f', 'x', value), [{}], [null, [], 'a', () => 1]],
  ['checkFunction', 'FUNCTION', (value) => checkFunction('f', 'x', value), [() => 1], [{}, null, 'a']],
])('%s', (_, code, check, allowed, refused) => {
  it('takes what it asks for, and nothing else', () => {
    for (const value of allowed) check(value as never);
    for (const value of refused) {
      const attempt = () => check(value as never);
      expect(attempt).toThrow(RooflineError);
      expect(attempt).toThrow(expect.objectContaining({ code }));
      expect(attempt).toThrow(`f: x must be `);
      expect(attempt).toThrow(`, not ${describeValue(value)}.`);
    }
  });
});

it('counts say from where they start', () => {
  expect(() => checkCount('f', 'x', -1)).toThrow('whole number of zero or more');
  expect(() => checkCount('f', 'x', 0, 1)).toThrow('whole number of one or more');
  expect(() => checkNumber('f', 'x', NaN)).toThrow('a finite number');
});
