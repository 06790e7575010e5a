import { expect, it } from 'vitest';
import { listSome, valuesInWords } from '../../src/report/values-in-words.ts';

const words = (...values: number[]) =>
  valuesInWords(
    values.map((value, index) => ({ name: 'abc'[index]!, value })),
    String,
  );

it('gives one value alone, and the ends of several', () => {
  expect(words(3)).toBe('**3**');
  expect(words(3, 2, 1)).toBe('**3** for a to **1** for c');
});

it('says once what is the same everywhere', () => {
  expect(words(3, 3, 3)).toBe('**3** for a to c');
});

it('gives the least and the most of values that go up and down', () => {
  expect(words(3, 1, 2)).toBe('**1** for b to **3** for a');
});

it('cuts long lists', () => {
  expect(listSome(['a', 'b'])).toBe('a; b');
  expect(listSome(['a', 'b', 'c', 'd', 'e', 'f'])).toBe('a; b; c; d; and 2 more');
});
