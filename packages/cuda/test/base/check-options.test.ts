import { expect, test } from 'vitest';
import { RooflineError } from '../../src/base/errors.ts';
import { checkOptions } from '../../src/base/check-options.ts';
import { nearestOf } from '../../src/base/nearest.ts';

const known = ['dims', 'keepDims', 'learningRate'];

test.each([
  ['dim', 'dims'],
  ['lr', 'learningRate'],
  ['keepdim', 'keepDims'],
  ['learning_rate', 'learningRate'],
  ['learningrat', 'learningRate'],
])('names the option nearest to %s', (wrong, right) => {
  expect(() => checkOptions('sum', { [wrong]: 1 }, known)).toThrow(
    `sum: there is no option "${wrong}"; did you mean "${right}"? It takes dims, keepDims, learningRate.`,
  );
});

test('names none where none is near', () => {
  expect(() => checkOptions('sum', { quux: 1 }, known)).toThrow('"quux"; it takes');
});

test('takes what is known, and an empty object', () => {
  checkOptions('sum', { dims: 1, keepDims: true }, known);
  checkOptions('sum', {}, known);
});

test.each([3, null, 'dims'])('refuses %j in place of an object', (options) => {
  expect(() => checkOptions('sum', options as unknown as object, known)).toThrow(RooflineError);
});

test.each([
  ['smal', 'small'],
  ['MEDIUM', 'medium'],
  ['cdua', 'cuda'],
  ['cup', 'cpu'],
  ['gigantic', null],
])('the nearest to %s', (given, nearest) => {
  expect(nearestOf(given, ['tiny', 'small', 'medium', 'xl', 'cpu', 'cuda'])).toBe(nearest);
});
