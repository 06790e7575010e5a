import { describe, expect, it } from 'vitest';
import {
  formatBytes,
  formatDuration,
  formatMeasured,
  formatNumber,
  formatPercent,
  formatRatio,
  formatUncertain,
} from '../src/index.ts';

describe('formatNumber', () => {
  it.each([
    [0, '0'],
    [-0.0000001, '-1.00e-7'],
    [7, '7'],
    [1024, '1024'],
    [128625000, '128,625,000'],
    [-12345.678, '-12,346'],
    [3.14159, '3.14'],
    [0.00123456, '0.00123'],
    [9.996, '10.0'],
    [1e15, '1.00e+15'],
    [NaN, 'NaN'],
    [-Infinity, '-∞'],
  ])('%d is %s', (value, text) => expect(formatNumber(value)).toBe(text));

  it('keeps zeros that are significant', () => {
    expect(formatNumber(5, 3)).toBe('5.00');
    expect(formatNumber(0.5, 4)).toBe('0.5000');
    expect(formatNumber(0, 3)).toBe('0.00');
  });
});

describe('units', () => {
  it('gives durations the unit that fits', () => {
    expect(formatDuration(1.23456)).toBe('1.23 ms');
    expect(formatDuration(0.0034)).toBe('3.40 µs');
    expect(formatDuration(0.00000712)).toBe('7.12 ns');
    expect(formatDuration(64321)).toBe('64.3 s');
    expect(formatDuration(0)).toBe('0.00 ms');
  });

  it('gives bytes binary units, and whole bytes below 1 KiB', () => {
    expect(formatBytes(1536 * 2 ** 20)).toBe('1.50 GiB');
    expect(formatBytes(2 ** 20 * 12.5)).toBe('12.5 MiB');
    expect(formatBytes(999)).toBe('999 B');
    expect(formatBytes(0)).toBe('0 B');
  });

  it('shows a whole column in the unit it names, without repeating it', () => {
    expect(formatMeasured(0.5, { kind: 'duration', unit: 'µs' })).toBe('500');
    expect(formatMeasured(2 ** 29, { kind: 'bytes', unit: 'GiB' })).toBe('0.500');
    expect(() => formatMeasured(1, { kind: 'bytes', unit: 'GB' })).toThrow(/'GB'.*TiB, GiB, MiB, KiB, B/);
  });

  it('writes fractions as percent and factors with a times sign', () => {
    expect(formatPercent(0.5823)).toBe('58.2 %');
    expect(formatPercent(1)).toBe('100 %');
    expect([0.00788, 0.000625, 1e-6, 0, -0.0042].map((fraction) => formatPercent(fraction))).toEqual([
      '0.79 %',
      '0.06 %',
      '<0.01 %',
      '0 %',
      '-0.42 %',
    ]);
    expect([0.58, 0.994, 0.998, 1.0213, 12.34, 0.0512].map((factor) => formatRatio(factor))).toEqual([
      '0.58×',
      '0.99×',
      '0.998×',
      '1.02×',
      '12.3×',
      '0.051×',
    ]);
  });
});

describe('formatUncertain', () => {
  it.each([
    [12.3456, 0.42, '12.3 ± 0.4'],
    [12.3456, 0.142, '12.35 ± 0.14'],
    [1500, 13, '1500 ± 13'],
    [1500, 234, '1500 ± 234'],
    [9.99, 0.0096, '9.99 ± 0.01'],
    [5.5, 0, '5.50 ± 0'],
  ])('%d and %d are %s', (value, deviation, text) => expect(formatUncertain(value, deviation)).toBe(text));

  it('scales value and deviation alike', () => {
    expect(formatMeasured(0.0123, { kind: 'duration' }, 0.0004)).toBe('12.3 ± 0.4 µs');
    expect(formatMeasured(0.58, { kind: 'percent' }, 0.004)).toBe('58.0 ± 0.4 %');
  });
});
