import { describe, expect, it } from 'vitest';
import { alternationBlocks, collectSteps, timeStep } from '../../src/measuring/timing.ts';

/** A device whose clock moves only when `work` says so, and which remembers its synchronizations. */
function fakeDevice() {
  let now = 0;
  let pending = false;
  return {
    log: [] as string[],
    work(durationMs: number) {
      now += durationMs;
      pending = true;
    },
    recordEvent() {
      const time = now;
      return { time, elapsedMs: (earlier: { time: number }) => time - earlier.time };
    },
    synchronize() {
      this.log.push(pending ? 'waited' : 'idle');
      pending = false;
    },
  };
}

describe('timeStep', () => {
  it('times phases and the whole between an idle start and an idle end', () => {
    const device = fakeDevice();
    device.work(100);
    const time = timeStep(device, (phase) => {
      phase('forward', () => device.work(3));
      device.work(1);
      phase('backward', () => device.work(6));
      phase('forward', () => device.work(2));
    });
    expect(time).toMatchObject({ deviceMs: 12, phasesMs: { forward: 5, backward: 6 } });
    expect(time.wallMs).toBeGreaterThanOrEqual(0);
    expect(device.log).toEqual(['waited', 'waited']);
  });

  it('returns what a phase returns', () => {
    const device = fakeDevice();
    timeStep(device, (phase) => expect(phase('forward', () => 'loss')).toBe('loss'));
  });
});

it('collectSteps keeps one sample a step, 0 for a phase that a step lacks', () => {
  expect(
    collectSteps([
      { deviceMs: 1, wallMs: 2, phasesMs: { forward: 1 } },
      { deviceMs: 3, wallMs: 4, phasesMs: { forward: 2, backward: 1 } },
    ]),
  ).toEqual({ deviceMs: [1, 3], wallMs: [2, 4], phasesMs: { forward: [1, 2], backward: [0, 1] } });
});

it.each([
  [1, [1]],
  [2, [1, 1]],
  [3, [1, 2]],
  [10, [5, 5]],
  [13, [4, 4, 5]],
])('alternationBlocks(%i) is %j', (steps, blocks) => {
  expect(alternationBlocks(steps)).toEqual(blocks);
});
