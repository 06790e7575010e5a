import { describe, expect, it } from 'vitest';
import { inequalities, rings, type ByHandSetting } from '../../src/plan/by-hand.ts';
import { planOf } from '../../src/plan/plan.ts';
import { byHandTables } from '../../src/plan/report/by-hand-tables.ts';
import { parameterUnits } from '../../src/plan/setting.ts';
import { setting, shape, toyMachine } from './toy-machine.ts';

const asked: ByHandSetting = {
  setting: { ...setting, dtype: 'bfloat16', shape: { ...shape, feedForwardDimension: 12_000 } },
  ...{ tokens: 40_000, flopsPerSecond: 800e12, linkBytesPerSecond: 400e9 },
};

/** Of N devices, seconds of what is calculated less those of what is sent. */
const excess = {
  'data parallel': (n: number) => (4 * asked.tokens) / (n * 800e12) - (4 * (n - 1)) / (n * 400e9),
  'sharded parameters': (n: number) => (2 * asked.tokens) / (n * 800e12) - (2 * (n - 1)) / (n * 400e9),
  'tensor parallel, forward': (n: number) => (6 * 12_000) / (n * 800e12) - (4 * (n - 1)) / (n * 400e9),
  'tensor parallel, backward': (n: number) => (12 * 12_000) / (n * 800e12) - (4 * (n - 1)) / (n * 400e9),
};

describe('the largest N by inequality', () => {
  const rows = inequalities(asked);

  it.each(Object.entries(excess))('is the last that calculates as long as it sends: %s', (how, of) => {
    const { mostGpus } = rows.find((row) => row.how === how)!;
    expect(of(mostGpus)).toBeGreaterThanOrEqual(-1e-12);
    expect(of(mostGpus + 1)).toBeLessThan(0);
  });

  it('is the product of both axes, and a quarter of it where they share their links', () => {
    const [own, shared] = rows.slice(-2).map(({ mostGpus }) => mostGpus);
    // 3/2 · B F (W / C)², and 3/8 of it, in two bytes a number.
    expect(own).toBe(Math.floor(1.5 * 40_000 * 12_000 * (400e9 / 800e12) ** 2));
    expect(shared).toBe(Math.floor(0.375 * 40_000 * 12_000 * (400e9 / 800e12) ** 2));
  });

  it('is one where links are too slow for two', () => {
    const slow = inequalities({ ...asked, linkBytesPerSecond: 1 });
    expect(slow.map(({ mostGpus }) => mostGpus)).toEqual(slow.map(() => 1));
  });

  it('is halved by numbers of twice the bytes', () => {
    const wide = inequalities({ ...asked, setting: { ...asked.setting, dtype: 'float32' } });
    expect(wide[0]!.mostGpus - 1).toBe((rows[0]!.mostGpus - 1) / 2);
  });
});

it('the alternate ring takes half of N times as long as the usual one', () => {
  const { bytes, ringMs, alternateMs } = rings(asked, 8);
  expect(bytes).toBe(2 * parameterUnits(asked.setting).total);
  expect(alternateMs).toBeCloseTo((1000 * 7 * bytes) / 400e9, 12);
  expect(alternateMs / ringMs).toBeCloseTo(4, 12);
});

describe('a plan', () => {
  const request = { ...setting, model: { size: 'toy', shape }, perNode: 8, linkBytesPerSecond: 10e9 };

  it('has both in two tables, over the network where there are several nodes', () => {
    const [byHand, ring] = byHandTables(planOf(toyMachine, { ...request, gpus: 16 }));
    expect([byHand!.id, byHand!.rows.length, ring!.id]).toEqual(['by-hand', 6, 'rings']);
    expect(byHand!.caption).toContain('W = 10.0 GB/s');
    expect(byHandTables(planOf(toyMachine, { ...request, gpus: 8 }))[0]!.caption).not.toContain(
      'W = 10.0 GB/s',
    );
  });

  it('has none of one device', () => {
    expect(byHandTables(planOf(toyMachine, { ...request, gpus: 1, perNode: 1 }))).toEqual([]);
  });
});
