import { describe, expect, it } from 'vitest';
import { distinctNames } from '../../src/report/distinct-names.ts';

describe('distinctNames', () => {
  it('leaves out what all names say, and returns it', () => {
    expect(
      distinctNames([
        'tiny · context 64 · 2 ranks · naive',
        'tiny · context 64 · 4 ranks · naive · sharded optimizer',
        'tiny · context 64 · 4 ranks · flat',
      ]),
    ).toEqual({
      names: ['2 ranks · naive', '4 ranks · naive · sharded optimizer', '4 ranks · flat'],
      shared: 'tiny · context 64',
    });
  });

  it('leaves something of each', () => {
    expect(distinctNames(['tiny · flat', 'tiny · flat · sharded optimizer'])).toEqual({
      names: ['flat', 'flat · sharded optimizer'],
      shared: 'tiny',
    });
    expect(distinctNames(['tiny · flat'])).toEqual({ names: ['tiny · flat'], shared: '' });
    expect(distinctNames(['tiny', 'tiny'])).toEqual({ names: ['tiny', 'tiny'], shared: '' });
    expect(distinctNames(['tiny', 'small'])).toEqual({ names: ['tiny', 'small'], shared: '' });
    expect(distinctNames([])).toEqual({ names: [], shared: '' });
  });

  it('leaves names alone that would be the same without', () => {
    const names = ['a · b · b', 'a · b · c · b', 'a · c · b'];
    expect(distinctNames(names)).toEqual({ names, shared: '' });
  });
});
