import { describe, expect, it } from 'vitest';
import { visiblePairs } from '../src/operands.ts';

describe('visiblePairs', () => {
  it('counts the pairs of a query and a key that it sees', () => {
    for (let queries = 0; queries <= 9; queries++) {
      for (let keys = 0; keys <= 9; keys++) {
        const sizes = { batch: 2, heads: 3, keyHeads: 1, queries, keys, headDimension: 4 };
        let seen = 0;
        for (let i = 0; i < queries; i++)
          for (let j = 0; j < keys; j++) seen += j <= i + keys - queries ? 1 : 0;
        expect([queries, keys, visiblePairs(sizes, true)]).toEqual([queries, keys, seen]);
        expect(visiblePairs(sizes, false)).toBe(queries * keys);
      }
    }
  });
});
