import { describe, expect, it } from 'vitest';
import { rowsOf } from '../../src/timeline/rows.ts';

const slice = (name: string, startUs: number, durationUs: number, depth?: number) => ({
  name,
  startUs,
  durationUs,
  ...(depth === undefined ? {} : { depth }),
});

describe('rowsOf', () => {
  const names = (slices: ReturnType<typeof slice>[]) =>
    rowsOf({ name: 't', slices }).map((row) => row.map(({ name }) => name));

  it('puts what is inside another below it, whatever the order given', () => {
    expect(
      names([slice('leaf', 2, 1), slice('outer', 0, 10), slice('inner', 0, 5), slice('next', 10, 5)]),
    ).toEqual([['outer', 'next'], ['inner'], ['leaf']]);
  });

  it('takes the depth that is given', () => {
    expect(names([slice('low', 0, 1, 2), slice('top', 5, 1, 0)])).toEqual([['top'], [], ['low']]);
  });

  it('puts nothing in a line before the longest of those that were given it has ended', () => {
    expect(names([slice('long', 0, 100, 0), slice('short', 10, 10, 0), slice('free', 50, 5)])).toEqual([
      ['long', 'short'],
      ['free'],
    ]);
  });
});
