import { describe, expect, it } from 'vitest';
import { alternationBlocks, collectSteps, timeStep } from '../../src/measuring/timing.ts';
import { FakeDevice } from '../fixtures/fake-device.ts';

describe('timeStep', () => {
  it('times phases and the whole between an idle start and an idle end, on both clocks', () => {
    const device = new FakeDevice();
    device.run(100);
    const time = timeStep(device, (phase) => {
      phase('forward', () => device.run(3, 0.5));
      device.run(1);
      phase('backward', () => device.run(6));
      phase('forward', () => device.run(2));
    });
    // The host is half a millisecond ahead of the device as it queues the first work.
    expect(time).toEqual({ deviceMs: 12.5, wallMs: 12.625, phasesMs: { forward: 5.5, backward: 6 } });
    expect(device.isIdle).toBe(true);
  });

  it('times the host and the device separately', () => {
    const device = new FakeDevice();
    const time = timeStep(device, (phase) => {
      phase('forward', () => device.run(4));
      device.hostMs += 10;
    });
    expect(time).toEqual({ deviceMs: 10, wallMs: 10.125, phasesMs: { forward: 4 } });
    const idle = timeStep(device, () => {});
    expect(idle).toEqual({ deviceMs: 0, wallMs: 0.125, phasesMs: {} });
  });

  it('refuses a step or a phase that is async, which it would time up to its first await', () => {
    const device = new FakeDevice();
    const fails = async () => {
      device.run(1);
      await Promise.reject(new Error('later'));
    };
    expect(() => timeStep(device, fails)).toThrow('timeStep: step is async');
    expect(() => timeStep(device, (phase) => void phase('forward', fails))).toThrow(
      'timeStep: the phase forward is async',
    );
  });

  it('returns what a phase returns', () => {
    timeStep(new FakeDevice(), (phase) => expect(phase('forward', () => 'loss')).toBe('loss'));
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
  [11, [3, 4, 4]],
  [0, []],
])('alternationBlocks(%i) is %j', (steps, blocks) => {
  expect(alternationBlocks(steps)).toEqual(blocks);
});
