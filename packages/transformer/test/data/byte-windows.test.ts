import { scope } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { type ByteWindowsOptions, byteWindows } from '../../src/index.ts';

/** No two windows of three bytes or more are alike: each place has its own two bytes. */
const alphabet = Array.from({ length: 80 }, (_, i) => String.fromCharCode(40 + i));
const long = alphabet.flatMap((a) => alphabet.map((b) => a + b)).join('');

const wordsOf = (text: string, options: ByteWindowsOptions): { ids: string[]; targets: string[] } =>
  scope(() => {
    const { ids, targets } = byteWindows(text, options);
    const rows = (tensor: typeof ids) =>
      (tensor.toArray() as number[][]).map((row) => String.fromCharCode(...row));
    const shape = [options.batch, options.contextLength];
    expect([ids.shape, targets.shape]).toEqual([shape, shape]);
    return { ids: rows(ids), targets: rows(targets) };
  });

/** Where the windows of the first steps begin. */
function startsOf(text: string, steps: number, options: Omit<ByteWindowsOptions, 'step'>): number[] {
  return Array.from({ length: steps }, (_, step) =>
    wordsOf(text, { step, ...options }).ids.map((word) => text.indexOf(word)),
  ).flat();
}

describe('byteWindows', () => {
  it('gives windows of bytes with the bytes that follow', () => {
    const { ids, targets } = wordsOf('abcdefgh', { step: 0, batch: 4, contextLength: 4 });
    expect(ids.toSorted()).toEqual(['abcd', 'bcde', 'cdef', 'defg']);
    ids.forEach((word, row) =>
      expect(targets[row]).toBe('abcdefgh'.slice('abcdefgh'.indexOf(word) + 1).slice(0, 4)),
    );
  });

  it.each([
    [1, 3],
    [2, 1],
    [31, 1],
    [60, 7],
    [61, 8],
    [31 * 37, 16],
  ])('begins once at each of %i places before it comes to one again, in batches of %i', (places, batch) => {
    const contextLength = 4;
    const text = long.slice(0, places + contextLength);
    const all = Array.from({ length: places }, (_, i) => i);
    const starts = startsOf(text, Math.ceil((3 * places) / batch), { batch, contextLength });
    const epochs = [0, 1, 2].map((epoch) => starts.slice(epoch * places, (epoch + 1) * places));
    for (const epoch of epochs) expect(epoch.toSorted((a, b) => a - b)).toEqual(all);
    if (places > 10) expect(new Set(epochs.map((epoch) => epoch.join())).size).toBe(3);
  });

  it('spreads the windows of a batch over the text', () => {
    const contextLength = 32;
    const places = long.length - contextLength;
    for (let step = 0; step < 20; step++) {
      const starts = wordsOf(long, { step, batch: 32, contextLength }).ids.map((word) => long.indexOf(word));
      const quarters = new Set(starts.map((start) => Math.floor((4 * start) / places)));
      expect([...quarters].sort()).toEqual([0, 1, 2, 3]);
      const sorted = starts.toSorted((a, b) => a - b);
      expect(sorted.at(-1)! - sorted[0]!).toBeGreaterThan(0.7 * places);
      // Nor do they lie at one distance from each other, as on a grid.
      expect(new Set(sorted.slice(1).map((start, i) => start - sorted[i]!)).size).toBeGreaterThan(16);
    }
  });

  it('has an order for each seed, and goes on at a step as if it had come there', () => {
    const options = { batch: 4, contextLength: 8 };
    const [first, again, other] = [0, undefined, 5].map((seed) => startsOf(long, 10, { ...options, seed }));
    expect(again).toEqual(first);
    expect(other).not.toEqual(first);
    const { ids } = wordsOf(long, { step: 7, ...options });
    expect(ids.map((word) => long.indexOf(word))).toEqual(first!.slice(28, 32));
    // Ranks of a group take parts of the joined batch.
    expect(startsOf(long, 5, { batch: 8, contextLength: 8 })).toEqual(first);
  });

  it('counts bytes, not characters', () => {
    const { ids } = wordsOf('äöü', { step: 0, batch: 4, contextLength: 2 });
    const bytes = Buffer.from('äöü').toString('latin1');
    expect(ids.toSorted()).toEqual([0, 1, 2, 3].map((i) => bytes.slice(i, i + 2)).toSorted());
  });

  it('refuses a text that is too short', () => {
    expect(() => byteWindows('abcd', { step: 0, batch: 2, contextLength: 4 })).toThrow(
      'windows of 4 need a longer text than 4 bytes',
    );
  });
});
