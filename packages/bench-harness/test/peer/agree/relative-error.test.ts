import { expect, it } from 'vitest';
import { relativeError } from '../../../src/peer/agree/agree-task.ts';

it('measures the difference by norm, against the second', () => {
  expect(relativeError([1, 2], [1, 2])).toBe(0);
  expect(relativeError([3, 4.5], [3, 4])).toBeCloseTo(0.1, 12);
  expect(relativeError([1], [0])).toBe(Infinity);
  expect(relativeError([NaN], [1])).toBeNaN();
  expect(() => relativeError([1], [1, 2])).toThrow(RangeError);
});
