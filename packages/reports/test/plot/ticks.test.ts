import { describe, expect, it } from 'vitest';
import { linearTicks, logTicks, tickTexts } from '../../src/plot/ticks.ts';

describe('linearTicks', () => {
  it('covers the range in round steps', () => {
    expect(linearTicks(0, 805, 5)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(linearTicks(-0.13, 0.31, 4)).toEqual([-0.2, 0, 0.2, 0.4]);
    expect(linearTicks(3, 3, 4).length).toBeGreaterThan(1);
  });

  it('writes all ticks to the same place', () => {
    const ticks = linearTicks(0, 0.3, 3);
    expect(tickTexts(ticks, 'linear')).toEqual(['0.0', '0.1', '0.2', '0.3']);
    expect(tickTexts(linearTicks(0, 1.2e6, 3), 'linear').at(-1)).toBe('1,500,000');
  });
});

it.each([
  ['a range that only rounding left', 1, 1 + 2 ** -52, '1.0 1.2 1.4 1.6 1.8 2.0'],
  ['a run that diverged', 0, 3.4e299, '0 1e+299 2e+299 3e+299 4e+299'],
  ['the FLOPs of long training', 3.12e21, 3.14e21, '3.120e+21 3.125e+21 3.130e+21 3.135e+21 3.140e+21'],
  ['small numbers', 0, 2e-300, '0 5e-301 1.0e-300 1.5e-300 2.0e-300'],
  ['small numbers apart from 0', 1e-300, 2e-300, '1.0e-300 1.2e-300 1.4e-300 1.6e-300 1.8e-300 2.0e-300'],
])('linear ticks of %s', (_, low, high, texts) => {
  expect(tickTexts(linearTicks(low, high, 5), 'linear').join(' ')).toBe(texts);
});

describe('logTicks', () => {
  it('takes powers of two for values that are such', () => {
    expect(logTicks(256, 4096, 8, [256, 1024, 4096])).toEqual([256, 512, 1024, 2048, 4096]);
  });

  it('takes 1, 2, 5 over a short range and powers of ten over a long one', () => {
    expect(logTicks(3, 80, 6, [])).toEqual([2, 5, 10, 20, 50, 100]);
    expect(logTicks(0.02, 3e4, 6, [])).toEqual([0.01, 0.1, 1, 10, 100, 1000, 10000, 100000]);
  });

  it('ends in a round number over a range of many powers', () => {
    for (let power = -30; power <= 30; power += 1) {
      const ticks = logTicks(10 ** power, 2 * 10 ** (power + 10), 7, []);
      expect(ticks.map((tick) => tick.toExponential()).join(' ')).toMatch(/^(1e[+-]\d+ ?)+$/);
    }
  });

  it('writes large and small powers short', () => {
    expect(tickTexts([0.05, 0.125, 8192, 1e6, 2e9, 1e-5], 'log')).toEqual([
      '0.05',
      '0.125',
      '8192',
      '10⁶',
      '2×10⁹',
      '10⁻⁵',
    ]);
  });
});
