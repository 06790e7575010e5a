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

it.each([61, 62, 63, 31, 31 * 37, 1])('comes round to all of %i places', (places) => {
  const contextLength = 3;
  // No two windows are alike: each place has its own two bytes.
  const alphabet = Array.from({ length: 40 }, (_, i) => String.fromCharCode(40 + i));
  const text = alphabet
    .flatMap((a) => alphabet.map((b) => a + b))
    .join('')
    .slice(0, places + contextLength);
  const seen = new Set<string>();
  for (let step = 0; step < places; step++) {
    const { ids } = byteWindows(text, { step, batch: 1, contextLength });
    seen.add(String.fromCharCode(...(ids.toTypedArray() as Int32Array)));
  }
  expect(seen.size).toBe(
    new Set(Array.from({ length: places }, (_, i) => text.slice(i, i + contextLength))).size,
  );
});

it('refuses a text that is too short', () => {
  expect(() => byteWindows('abcd', options)).toThrow('windows of 4 need a longer text than 4 bytes');
});
