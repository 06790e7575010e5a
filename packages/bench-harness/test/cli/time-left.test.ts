import { describe, expect, it } from 'vitest';
import { TimeLeft } from '../../src/cli/time-left.ts';

describe('TimeLeft', () => {
  it('follows from the pace of the steps that count, not of warm-up', () => {
    const timeLeft = new TimeLeft();
    timeLeft.started(1, 0);
    timeLeft.cellStarted(0);
    expect(timeLeft.inWords(5000)).toBeNull();
    timeLeft.cellProgressed(1, 1, 'warm-up', 20_000);
    expect(timeLeft.inWords(20_000)).toBeNull();
    timeLeft.cellProgressed(1, 11, 'steps', 22_000);
    expect(timeLeft.inWords(22_000)).toBe('20 s left');
    // It counts down between steps, and says nothing once it has been wrong.
    expect(timeLeft.inWords(27_000)).toBe('15 s left');
    expect(timeLeft.inWords(50_000)).toBeNull();
  });

  it('counts the cells that come by those that went', () => {
    const timeLeft = new TimeLeft();
    timeLeft.started(4, 0);
    timeLeft.cellStarted(0);
    timeLeft.cellFinished(60_000);
    timeLeft.cellStarted(60_000);
    expect(timeLeft.inWords(60_000)).toBe('3 min left');
    timeLeft.cellProgressed(1, 2, 'steps', 70_000);
    // 10 s of this one, two more of 60 s.
    expect(timeLeft.inWords(70_000)).toBe('2 min left');
  });

  it('counts the cells that come by the whole of the first, before that has ended', () => {
    const timeLeft = new TimeLeft();
    timeLeft.started(3, 0);
    timeLeft.cellStarted(0);
    timeLeft.cellProgressed(1, 2, 'steps', 40_000);
    // 40 s of this one, and of two more 80 s each.
    expect(timeLeft.inWords(40_000)).toBe('3 min left');
  });

  it('says nothing of what takes seconds in all, and hours where it takes them', () => {
    const timeLeft = new TimeLeft();
    timeLeft.started(1, 0);
    timeLeft.cellStarted(0);
    timeLeft.cellProgressed(1, 4, 'steps', 2000);
    expect(timeLeft.inWords(2000)).toBeNull();
    timeLeft.cellProgressed(2, 10_000, 'steps', 4000);
    expect(timeLeft.inWords(4000)).toBe('5.5 h left');
  });
});
