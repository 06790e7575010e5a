import { expect, test } from 'vitest';
import { SessionCache } from '../../../../src/backends/cpu/lowering/session-cache.ts';

test('the older half goes when the cache is full', () => {
  const disposed: string[] = [];
  const made: string[] = [];
  const cache = new SessionCache<{ dispose(): void }>(4);
  const get = (key: string) =>
    cache.get(key, () => {
      made.push(key);
      return { dispose: () => disposed.push(key) };
    });
  for (const key of ['a', 'b', 'c', 'd', 'a']) get(key);
  expect(made).toEqual(['a', 'b', 'c', 'd']);
  get('e');
  expect(disposed).toEqual(['b', 'c']);
  expect(cache.size).toBe(3);
  get('a');
  get('b');
  expect(made).toEqual(['a', 'b', 'c', 'd', 'e', 'b']);
});
