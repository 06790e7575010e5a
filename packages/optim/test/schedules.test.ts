import { describe, expect, it } from 'vitest';
import {
  type ScheduleDescription,
  constantSchedule,
  cosineSchedule,
  linearSchedule,
  scheduleOf,
  wsdSchedule,
} from '../src/index.ts';

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

describe('linearSchedule', () => {
  it('rises and falls along straight lines, and stays', () => {
    const schedule = linearSchedule({ maximum: 1, minimum: 0.5, warmupSteps: 2, totalSteps: 6 });
    expect([0, 1, 2, 3, 4, 5, 6, 7].map(schedule)).toEqual([0, 0.5, 1, 0.875, 0.75, 0.625, 0.5, 0.5]);
  });

  it('names itself in errors', () => {
    expect(() => linearSchedule({ maximum: 1, minimum: 2, totalSteps: 4 })).toThrow(
      /^linearSchedule: minimum/,
    );
  });
});

describe('wsdSchedule', () => {
  it('stays at the maximum until its decay', () => {
    const schedule = wsdSchedule({
      ...{ maximum: 1, minimum: 0.5, warmupSteps: 2, totalSteps: 10, decaySteps: 4 },
    });
    expect([1, 2, 6, 7, 8, 9, 10, 20].map(schedule)).toEqual([0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.5]);
  });

  it('decays over the last fifth unless given otherwise, and may not decay at all', () => {
    const schedule = wsdSchedule({ maximum: 1, totalSteps: 10 });
    expect([0, 8, 9, 10].map(schedule)).toEqual([1, 1, 0.5, 0]);
    expect([9, 10].map(wsdSchedule({ maximum: 1, totalSteps: 10, decaySteps: 0 }))).toEqual([1, 0]);
    // A fifth of 9 is one step and a bit.
    expect([7, 8, 9].map(wsdSchedule({ maximum: 1, totalSteps: 9 }))).toEqual([1, 1, 0]);
  });

  it('may decay from the last step of its warm-up on', () => {
    const schedule = wsdSchedule({ maximum: 1, warmupSteps: 2, totalSteps: 4, decaySteps: 2 });
    expect([0, 1, 2, 3, 4].map(schedule)).toEqual([0, 0.5, 1, 0.5, 0]);
  });

  it('is the same until its decay, however long it is', () => {
    const [short, long] = [10, 100].map((totalSteps) =>
      wsdSchedule({ maximum: 1, warmupSteps: 3, totalSteps, decaySteps: 5 }),
    );
    for (let step = 0; step <= 5; step++) expect(long!(step)).toBe(short!(step));
  });

  it('names the option that is missing, not one that follows from it', () => {
    expect(() => wsdSchedule({ maximum: 1 } as never)).toThrow(
      /^wsdSchedule: totalSteps must .* not undefined/,
    );
  });

  it('refuses a warm-up and a decay that overlap', () => {
    expect(() => wsdSchedule({ maximum: 1, warmupSteps: 9, totalSteps: 10, decaySteps: 2 })).toThrow(
      /warmupSteps 9 and decaySteps 2 are more than totalSteps 10/,
    );
  });
});

it.each([cosineSchedule, linearSchedule, wsdSchedule])('%o may have its maximum as its minimum', (make) => {
  const schedule = make({ maximum: 2, minimum: 2, warmupSteps: 1, totalSteps: 5 });
  expect([0, 1, 2, 3, 4, 5, 6].map(schedule)).toEqual([0, 2, 2, 2, 2, 2, 2]);
});

it('constantSchedule stays at the maximum', () => {
  expect([0, 1, 2, 1e9].map(constantSchedule({ maximum: 4, warmupSteps: 2 }))).toEqual([0, 2, 4, 4]);
});

describe('scheduleOf', () => {
  it.each([
    cosineSchedule({ maximum: 1, minimum: 0.1, warmupSteps: 3, totalSteps: 9 }),
    linearSchedule({ maximum: 1, totalSteps: 9 }),
    wsdSchedule({ maximum: 1, warmupSteps: 1, totalSteps: 9 }),
    constantSchedule({ maximum: 1, warmupSteps: 3 }),
  ])('makes $description.kind again of what JSON holds of it', (schedule) => {
    const again = scheduleOf(JSON.parse(JSON.stringify(schedule.description)) as ScheduleDescription);
    for (let step = 0; step < 11; step++) expect(again(step)).toBe(schedule(step));
  });

  it('names the kinds there are', () => {
    expect(() => scheduleOf({ kind: 'cosin', maximum: 1, totalSteps: 2 } as never)).toThrow(
      /kind must be one of cosine, linear, wsd, constant, not/,
    );
  });
});
