import { describe, expect, it } from 'vitest';
import type { ProcessGroup } from '@roofline/collectives';
import { Stopping } from '../../src/train/stopping.ts';

describe('stopping', () => {
  it('is asked for by this process alone at once', async () => {
    const controller = new AbortController();
    const stopping = new Stopping(controller.signal, null);
    expect(await stopping.isAsked(1, 1)).toBe(false);
    controller.abort();
    expect(await stopping.isAsked(2, 1)).toBe(true);
  });

  it('is agreed on by ranks at the same step, four times a second by the pace of the first', async () => {
    const asked: number[] = [];
    let isOtherInterrupted = false;
    let step = 0;
    const group = {
      allGatherObject: async (value: { stepMs: number }) => {
        asked.push(step);
        return [
          { ...value, stepMs: 50 },
          { isInterrupted: isOtherInterrupted, stepMs: 1000 },
        ];
      },
    } as unknown as ProcessGroup;
    const stopping = new Stopping(new AbortController().signal, group);
    for (step = 1; step <= 12; step++) {
      if (step === 7) isOtherInterrupted = true;
      if (await stopping.isAsked(step, 1)) break;
    }
    expect(asked).toEqual([1, 6, 11]);
    expect(step).toBe(11);
  });
});
