import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { currentOpenRange } from '../../../src/tensor/ranges/range.ts';
import { ReopenedRanges } from '../../../src/tensor/ranges/reopened-ranges.ts';

/** The innermost of ranges of these names, opened one inside the other. */
function opened(...names: string[]): t.OpenRange {
  const [name, ...inner] = names;
  return t.range(name!, () => (inner.length > 0 ? opened(...inner) : currentOpenRange()!));
}

const open = () => currentOpenRange()!;
const ofForwardPass = () => new ReopenedRanges({ without: 'forward' });

describe('ReopenedRanges', () => {
  it('reopens the ranges of a call below those that are open, except one that is left out', () => {
    const ranges = ofForwardPass();
    const path = (range: t.OpenRange | null) => ranges.run(range, t.currentRange);
    const [whole, part, named, forward] = [
      opened('forward', 'layer', 'norm'),
      opened('layer', 'norm'),
      opened('layer', 'forward'),
      opened('forward'),
    ];
    t.range('backward', () => {
      expect(path(whole)).toEqual(['backward', 'layer', 'norm']);
      expect(path(part)).toEqual(['backward', 'layer', 'norm']);
      expect(path(named)).toEqual(['backward', 'layer', 'forward']);
      expect(path(forward)).toEqual(['backward']);
      expect(path(null)).toEqual(['backward']);
      expect(t.currentRange()).toEqual(['backward']);
    });
    expect(path(opened('layer'))).toEqual(['layer']);
    expect(path(opened('forward'))).toEqual([]);
    expect(t.currentRange()).toEqual([]);
  });

  it('does not open again what is open', () => {
    t.range('step', () => {
      const norm = opened('forward', 'layer', 'norm');
      t.range('backward', () => {
        expect(ofForwardPass().run(norm, t.currentRange)).toEqual(['step', 'backward', 'layer', 'norm']);
        expect(ofForwardPass().run(norm.outer!.outer, t.currentRange)).toEqual(['step', 'backward']);
      });
    });
  });

  it('leaves out what was around them', () => {
    t.range('call', () => {
      const ranges = new ReopenedRanges({ inside: currentOpenRange() });
      const range = opened('layer', 'norm');
      expect(range.path).toEqual(['call', 'layer', 'norm']);
      expect(ranges.below(null, range)!.path).toEqual(['layer', 'norm']);
      expect(ranges.below(null, currentOpenRange())).toBeNull();
    });
  });

  it('shares the outer ranges of calls that follow each other, and no others', () => {
    const ranges = ofForwardPass();
    const [b, c] = t.range('a', () => [opened('b'), opened('c')] as const);
    const again = t.range('a', () => opened('b'));
    const first = t.range('backward', () => {
      const inB = ranges.run(b, open);
      expect(ranges.run(b, open)).toBe(inB);
      const inC = ranges.run(c, open);
      expect(inC).not.toBe(inB);
      expect(inC.outer).toBe(inB.outer);
      expect(ranges.run(b.outer, open)).toBe(inC.outer);
      // Another opening of the same names.
      const other = ranges.run(again, open);
      expect(other.path).toEqual(inB.path);
      expect(other.outer).not.toBe(inB.outer);
      expect(other.outer!.outer).toBe(open());
      const back = ranges.run(b, open);
      expect(back.outer).not.toBe(inB.outer);
      return back;
    });
    const second = t.range('backward', () => ranges.run(b, open));
    expect(second).not.toBe(first);
    expect(second.path).toEqual(first.path);
    expect(second.outer!.outer).not.toBe(first.outer!.outer);
  });

  it('closes its ranges when what runs in them throws, whether it is notified or not', () => {
    const told: string[] = [];
    const range = opened('forward', 'a', 'b');
    const run = () =>
      ofForwardPass().run(range, () => {
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

  it('returns what its function returns', () => {
    const range = opened('a');
    expect(ofForwardPass().run(range, () => 7)).toBe(7);
    const stop = t.onRange({ enter: () => undefined, exit: () => undefined });
    expect(ofForwardPass().run(range, () => 8)).toBe(8);
    expect(ofForwardPass().run(null, () => 9)).toBe(9);
    stop();
  });
});
