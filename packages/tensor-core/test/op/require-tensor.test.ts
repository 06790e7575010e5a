import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';

it('functions without options can be given to Array.map, which hands them more', () => {
  t.scope(() => {
    const list = [t.tensor([1, -1]), t.tensor([2, -2])];
    expect(list.map(t.relu).map((x) => x.toArray())).toEqual([[1, 0], [2, 0]]); // prettier-ignore
    expect(list.map(t.contiguous)).toHaveLength(2);
    expect(list.map(t.alias)).toHaveLength(2);
  });
});

it('names the options that a function does not take', () => {
  t.scope(() => {
    const x = t.ones([2]);
    const cumsum = t.cumsum as (...args: unknown[]) => t.Tensor;
    expect(() => cumsum(x, 0, { reverse: true })).toThrow(
      'cumsum: takes no further argument, but got { reverse }; leave it out.',
    );
    expect(cumsum(x, 0, undefined).toArray()).toEqual([1, 2]);
    expect(() => cumsum(x, 0, 'float64')).toThrow('the text "float64"');
  });
});

it('names what is not a tensor, and where a list of them is wanted', () => {
  expect(() => t.requireTensors('concatAll', [t.ones([1]), {} as t.Tensor])).toThrow(
    'concatAll: takes tensors, not an object',
  );
  expect(() => t.requireTensors('concatAll', null as never)).toThrow(
    'concatAll: its tensors must be a list, not null',
  );
});
