import { describe, expect, it } from 'vitest';
import { cosineSchedule } from '../src/index.ts';

describe('cosineSchedule', () => {
  const schedule = cosineSchedule({ maximum: 1, minimum: 0.1, warmupSteps: 7, totalSteps: 21 });

  it('rises linearly, falls by half a cosine, and stays', () => {
    const warmup = [0, 1 / 7, 2 / 7, 3 / 7, 4 / 7, 5 / 7, 6 / 7];
    // 0.1 + 0.9 (1 + cos(π n / 14)) / 2 for n = 0 to 14, by Python.
    const cosine = [
      1, 0.98871756, 0.95543599, 0.90182417, 0.83057041, 0.74524768, 0.65013442, 0.55, 0.44986558, 0.35475232,
      0.26942959, 0.19817583, 0.14456401, 0.11128244, 0.1,
    ];
    [...warmup, ...cosine, 0.1, 0.1].forEach((value, step) => expect(schedule(step)).toBeCloseTo(value, 7));
  });

  it('starts at the maximum without a warm-up', () => {
    expect(cosineSchedule({ maximum: 3e-4, totalSteps: 10 })(0)).toBe(3e-4);
  });

  it('ends at zero unless given otherwise, and may be all warm-up', () => {
    expect(cosineSchedule({ maximum: 1, totalSteps: 10 })(10)).toBe(0);
    const warmup = cosineSchedule({ maximum: 1, minimum: 0.5, warmupSteps: 4, totalSteps: 4 });
    expect([0, 2, 3, 4, 5].map(warmup)).toEqual([0, 0.5, 0.75, 0.5, 0.5]);
  });

  it('refuses what makes no schedule', () => {
    expect(() => cosineSchedule({ maximum: 1, warmupSteps: 5, totalSteps: 4 })).toThrow(/warmupSteps 5/);
    expect(() => cosineSchedule({ maximum: 1, minimum: 2, totalSteps: 4 })).toThrow(/minimum 2/);
    expect(() => cosineSchedule({ maximum: 1, minimum: -1, totalSteps: 4 })).toThrow(
      /minimum must .* not -1/,
    );
    expect(() => cosineSchedule({ maximum: 1, warmupSteps: -1, totalSteps: 4 })).toThrow(
      /warmupSteps must .* not -1/,
    );
    expect(() => cosineSchedule({ maximum: NaN, totalSteps: 4 })).toThrow(/maximum must .* not NaN/);
  });
});
