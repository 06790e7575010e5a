import { expect, it } from 'vitest';
import { byteWindows } from '../../src/index.ts';

const options = { step: 0, batch: 2, contextLength: 4 };

it('gives windows of bytes with the bytes that follow', () => {
  const text = 'abcdefgh';
  const { ids, targets } = byteWindows(text, options);
  const words = (tensor: typeof ids) => String.fromCharCode(...(tensor.toTypedArray() as Int32Array));
  expect(ids.shape).toEqual([2, 4]);
  // The second window begins at 31 modulo 4.
  expect(words(ids)).toBe('abcddefg');
  expect(words(targets)).toBe('bcdeefgh');
  expect(words(byteWindows(text, { ...options, step: 1 }).ids)).not.toBe(words(ids));
});

it('refuses a text that is too short', () => {
  expect(() => byteWindows('abcd', options)).toThrow('windows of 4 need a longer text than 4 bytes');
});
