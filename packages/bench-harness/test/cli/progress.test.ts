import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ProgressDisplay } from '../../src/cli/progress.ts';
import { outOfMemoryRecord, toyRecord } from '../fixtures/records.ts';

function display(isTTY: boolean) {
  let text = '';
  const progress = new ProgressDisplay({ isTTY, columns: 40, write: (part) => (text += part) });
  return { progress, text: () => stripVTControlCharacters(text), raw: () => text };
}

describe('ProgressDisplay', () => {
  it('writes plain lines where no one watches', () => {
    const { progress, text, raw } = display(false);
    progress.sweepStarted(3, 1);
    progress.cellStarted('small · forward', 2);
    progress.cellProgressed(1, 10, 'steps');
    progress.cellFinished(toyRecord());
    progress.cellFinished(outOfMemoryRecord());
    expect(text().split('\n')).toEqual([
      '1 of 3 cells were measured before and are kept.',
      '✓ [2/3] small · forward · 1.23 s',
      '! [2/3] small · forward · out-of-memory: asked for 1 GiB, free are 2 MiB',
      '',
    ]);
    expect(raw()).not.toContain('\r');
  });

  it('counts one cell as one', () => {
    const { progress, text } = display(false);
    progress.sweepStarted(1, 1);
    expect(text()).toBe('1 of 1 cell was measured before and is kept.\n');
  });

  it('rewrites one line, never wider than the terminal, where someone does', () => {
    const { progress, raw } = display(true);
    progress.sweepStarted(3, 0);
    progress.cellStarted('a description that is longer than the terminal is wide', 1);
    progress.cellProgressed(1, 10, 'steps');
    const lines = raw().split('\r').map(stripVTControlCharacters);
    expect(lines.every((line) => line.length < 40)).toBe(true);
    expect(raw()).not.toContain('\n');
  });

  it('shows that it goes on: the time since something changed, or the time left', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { progress, raw } = display(true);
    const line = () => stripVTControlCharacters(raw().split('\r').at(-1)!);
    progress.status('Looking for PyTorch');
    vi.advanceTimersByTime(1500);
    expect(line()).toBe('Looking for PyTorch');
    vi.advanceTimersByTime(3500);
    expect(line()).toBe('Looking for PyTorch · 5 s');
    progress.sweepStarted(1, 0);
    progress.cellStarted('a cell', 1);
    vi.advanceTimersByTime(4000);
    progress.cellProgressed(1, 6, 'steps');
    expect(line()).toBe('[1/1] a cell · steps 1/6 · 20 s left');
    vi.advanceTimersByTime(2000);
    expect(line()).toBe('[1/1] a cell · steps 1/6 · 18 s left');
    progress.clear();
    vi.advanceTimersByTime(5000);
    expect(line()).toBe('');
  });

  it('writes no control codes of a record, and no message that fills the screen', () => {
    const { progress, raw } = display(false);
    progress.cellStarted('custom \u001b]0;title\u0007', 1);
    const message = `\u001b[2J\r\u009b31m${'x'.repeat(1e6)}`;
    progress.cellFinished(toyRecord({}, { status: 'failed', error: { name: 'Error', message } }));
    expect(raw()).toContain('\ufffd[2J\ufffd\ufffd31mxxx');
    for (const code of ['\u001b[2J', '\u001b]', '\r', '\u0007', '\u009b']) expect(raw()).not.toContain(code);
    expect(raw().length).toBeLessThan(500);
  });
});
