import { expect, it } from 'vitest';
import { colorGroups } from '../../src/plot/color-groups.ts';

const part = (name: string, weight: number, category?: string) => ({ name, weight, category });

it('colours names in turn where nothing has a category', () => {
  const { colorOf, legend } = colorGroups([part('a', 1), part('b', 2), part('a', 3)]);
  expect([colorOf({ name: 'a' }), colorOf({ name: 'b' })]).toEqual([1, 2]);
  expect(legend).toEqual([]);
});

it('colours categories by weight, and leaves parts without one plain next to them', () => {
  const { colorOf, legend } = colorGroups([part('r', 9), part('k', 1, 'add'), part('l', 5, 'matmul')]);
  expect(legend.map(({ label }) => label)).toEqual(['matmul', 'add']);
  expect(colorOf({ name: 'l', category: 'matmul' })).toBe(1);
  expect(colorOf({ name: 'r' })).toBe(0);
});
