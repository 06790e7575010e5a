import { describe, expect, it } from 'vitest';
import { summarize } from '../../src/measuring/statistics.ts';
import { becameFaster, hasWideSpread, relativeSpread, spreadNotes } from '../../src/report/spread-notes.ts';

describe('times that say little', () => {
  it('reports the spread over the mean', () => {
    // Whose median is 9.
    expect(relativeSpread(summarize([9, 9, 12]))).toBeCloseTo(Math.sqrt(3) / 10, 12);
    expect(relativeSpread(summarize([-1, 1]))).toBe(0);
  });

  it('warns above 5 % of the mean, and not at it', () => {
    const at = (std: number) => ({ ...summarize([100]), std });
    expect([4.99, 5, 5.01].map((std) => hasWideSpread(at(std)))).toEqual([false, false, true]);
  });

  it('sees what became faster while it was timed, by all of the last third and of the first', () => {
    const steps = (last: number) => [106, 106, 106, 106, 103, 103, 103, 103, last, 100, 100, 100];
    expect(becameFaster(steps(100))).toBe(true);
    expect(becameFaster(steps(101))).toBe(false);
    expect(becameFaster(steps(100).toReversed())).toBe(false);
    // As many as are taken by default, and too few.
    expect(becameFaster([106, 106, 106, 103, 103, 103, 103, 100, 100, 100])).toBe(true);
    expect(becameFaster([106, 106, 103, 103, 103, 103, 100, 100])).toBe(false);
    expect(becameFaster([])).toBe(false);
    expect(becameFaster([106, 106, 104, 103, 103, 103, 100, 100, 100])).toBe(false);
    // By 5 % and not over it.
    const from100To = (last: number) => [100, 100, 100, 98, 98, 98, last, last, last];
    expect([95.001, 95, 94.999].map((last) => becameFaster(from100To(last)))).toEqual([false, false, true]);
  });

  it('says of cells once what is wrong with their times', () => {
    const cells = [
      {
        name: 'warming',
        samplesMs: [
          [9, 9, 9],
          [20, 20, 20, 15, 15, 15, 10, 10, 10],
        ],
      },
      { name: 'wide', samplesMs: [[100, 107, 93]] },
      { name: 'steady', samplesMs: [[100, 101, 99], [50]] },
    ];
    const texts = spreadNotes(cells).map((note) => (note.kind === 'note' ? note.text : ''));
    expect(texts).toEqual([
      expect.stringMatching(/^The spread is wide .* for wide\.$/),
      expect.stringMatching(/^The warm-up was too short for warming: /),
    ]);
  });

  it('warns by the samples', () => {
    expect(hasWideSpread(summarize([100, 104, 96]))).toBe(false);
    expect(hasWideSpread(summarize([100, 107, 93]))).toBe(true);
  });
});
