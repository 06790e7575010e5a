import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { currentOpenRange, resumeRange } from '../../src/op/range.ts';

const open = () => currentOpenRange()!;

describe('resumeRange', () => {
  it('opens the ranges of a call again below those that are open, but for the forward phase', () => {
    t.range('backward', () => {
      expect(resumeRange(['forward', 'layer', 'norm'], t.currentRange)).toEqual([
        'backward',
        'layer',
        'norm',
      ]);
      expect(resumeRange(['layer', 'norm'], t.currentRange)).toEqual(['backward', 'layer', 'norm']);
      expect(resumeRange(['forward'], t.currentRange)).toEqual(['backward']);
      expect(resumeRange([], t.currentRange)).toEqual(['backward']);
      expect(t.currentRange()).toEqual(['backward']);
    });
    expect(resumeRange(['layer'], t.currentRange)).toEqual(['layer']);
    expect(t.currentRange()).toEqual([]);
  });

  it('shares the outer ranges of calls that follow each other, and no others', () => {
    const names = ['forward', 'a', 'b'];
    const first = t.range('backward', () => {
      const b = resumeRange(names, open);
      expect(resumeRange(names, open)).toBe(b);
      expect(resumeRange(['forward', 'a', 'b'], open)).toBe(b);
      const c = resumeRange(['forward', 'a', 'c'], open);
      expect(c).not.toBe(b);
      expect(c.outer).toBe(b.outer);
      const other = resumeRange(['forward', 'z', 'c'], open);
      expect(other.outer).not.toBe(c.outer);
      expect(other).not.toBe(c);
      expect(b.outer!.outer).toBe(open());
      return resumeRange(names, open);
    });
    const second = t.range('backward', () => resumeRange(names, open));
    expect(second).not.toBe(first);
    expect(second.path).toEqual(first.path);
    expect(second.outer!.outer).not.toBe(first.outer!.outer);
  });

  it('closes its ranges when what runs in them throws, told or not', () => {
    const told: string[] = [];
    const run = () =>
      resumeRange(['forward', 'a', 'b'], () => {
        told.push(t.currentRange().join('/'));
        throw new Error('stop');
      });
    expect(run).toThrow('stop');
    expect(t.currentRange()).toEqual([]);
    const stop = t.onRange({
      enter: (name) => void told.push(`+${name}`),
      exit: (name) => void told.push(`-${name}`),
    });
    expect(run).toThrow('stop');
    stop();
    expect(run).toThrow('stop');
    expect(told).toEqual(['a/b', '+a', '+b', 'a/b', '-b', '-a', 'a/b']);
    expect(t.currentRange()).toEqual([]);
  });

  it('gives what its function gives', () => {
    expect(resumeRange(['a'], () => 7)).toBe(7);
    const stop = t.onRange({ enter: () => undefined, exit: () => undefined });
    expect(resumeRange(['a'], () => 8)).toBe(8);
    stop();
  });
});
