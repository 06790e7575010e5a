import { describe, expect, it } from 'vitest';
import { headingUnit, rawUnit } from '../../src/table/number-text.ts';
import {
  formatBytes,
  formatDuration,
  formatMeasured,
  formatNumber,
  formatPercent,
  formatRatio,
  formatUncertain,
} from '../../src/index.ts';

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
    [Infinity, '∞'],
    [-0, '0'],
    [9999, '9999'],
    [10000, '10,000'],
    [-1234567.5, '-1,234,568'],
    [1234567890, '1,234,567,890'],
    [999.5, '1000'],
    [99.96, '100'],
    [0.9996, '1.00'],
    [0.0001, '0.000100'],
    [0.00009999, '1.00e-4'],
    [-0.00012345, '-0.000123'],
    [999999999999999, '999,999,999,999,999'],
    [-1.5e15, '-1.50e+15'],
  ])('%d is %s', (value, text) => expect(formatNumber(value)).toBe(text));

  it('keeps zeros that are significant', () => {
    expect(formatNumber(5, 3)).toBe('5.00');
    expect(formatNumber(0.5, 4)).toBe('0.5000');
    expect(formatNumber(0, 3)).toBe('0.00');
    expect(formatNumber(0, 1)).toBe('0');
  });

  it('takes as many digits as asked for, but none before the decimal point away', () => {
    expect([1, 2, 3, 5].map((digits) => formatNumber(Math.PI, digits))).toEqual([
      '3',
      '3.1',
      '3.14',
      '3.1416',
    ]);
    expect([1, 2, 3, 4].map((digits) => formatNumber(123.456, digits))).toEqual([
      '123',
      '123',
      '123',
      '123.5',
    ]);
    expect([1, 2, 4].map((digits) => formatNumber(2.34e-7, digits))).toEqual(['2e-7', '2.3e-7', '2.340e-7']);
    expect([1, 2, 6].map((digits) => formatNumber(1234567890123456, digits))).toEqual([
      '1e+15',
      '1.2e+15',
      '1.23457e+15',
    ]);
    expect(formatNumber(7, 1)).toBe('7');
    expect(formatNumber(1e-30, 3)).toBe('1.00e-30');
    expect(formatNumber(0.001, 25)).toBe('0.00100000000000000002');
  });

  it('writes no sign before a zero', () => {
    expect(formatNumber(-0.4, 1)).toBe('-0.4');
    expect(formatMeasured(-0.00001, { kind: 'duration', unit: 's' })).toBe('-1.00e-8');
    expect(formatUncertain(-0.001, 0.4)).toBe('0.0 ± 0.4');
    expect(formatUncertain(-0.06, 0.4)).toBe('-0.1 ± 0.4');
  });
});

describe('units', () => {
  it('gives durations the unit that fits', () => {
    expect(formatDuration(1.23456)).toBe('1.23 ms');
    expect(formatDuration(0.0034)).toBe('3.40 µs');
    expect(formatDuration(0.00000712)).toBe('7.12 ns');
    expect(formatDuration(64321)).toBe('64.3 s');
    expect(formatDuration(0)).toBe('0.00 ms');
    expect([1000, 999.4, 1, 0.9994, 0.001, 0.000_999, 1e-6, 1e-9].map((ms) => formatDuration(ms))).toEqual([
      '1.00 s',
      '999 ms',
      '1.00 ms',
      '999 µs',
      '1.00 µs',
      '999 ns',
      '1.00 ns',
      '0.00100 ns',
    ]);
    expect([-2500, NaN, Infinity].map((ms) => formatDuration(ms))).toEqual(['-2.50 s', 'NaN ms', '∞ ms']);
    expect(formatDuration(1.23456, 5)).toBe('1.2346 ms');
    expect(formatDuration(1.5, undefined, 'µs')).toBe('1500');
    expect(['s', 'ms', 'µs', 'ns'].map((unit) => formatDuration(2, 3, unit))).toEqual([
      '0.00200',
      '2.00',
      '2000',
      '2,000,000',
    ]);
  });

  it('gives bytes binary units, and whole bytes below 1 KiB', () => {
    expect(formatBytes(1536 * 2 ** 20)).toBe('1.50 GiB');
    expect(formatBytes(2 ** 20 * 12.5)).toBe('12.5 MiB');
    expect(formatBytes(999)).toBe('999 B');
    expect(formatBytes(0)).toBe('0 B');
    expect(
      [2 ** 40, 2 ** 40 - 1, 2 ** 30, 2 ** 20, 2 ** 10, 1023, 0.5].map((each) => formatBytes(each)),
    ).toEqual(['1.00 TiB', '1024 GiB', '1.00 GiB', '1.00 MiB', '1.00 KiB', '1023 B', '0.500 B']);
    expect(['B', 'KiB', 'MiB', 'GiB', 'TiB'].map((unit) => formatBytes(3 * 2 ** 40, 3, unit))).toEqual([
      '3,298,534,883,328',
      '3,221,225,472',
      '3,145,728',
      '3072',
      '3.00',
    ]);
    expect(formatBytes(-1536)).toBe('-1.50 KiB');
    expect(formatBytes(1.5)).toBe('1.50 B');
    expect(formatBytes(NaN)).toBe('NaN B');
  });

  it('shows a whole column in the unit it names, without repeating it', () => {
    expect(formatMeasured(0.5, { kind: 'duration', unit: 'µs' })).toBe('500');
    expect(formatMeasured(2 ** 29, { kind: 'bytes', unit: 'GiB' })).toBe('0.500');
    expect(() => formatMeasured(1, { kind: 'bytes', unit: 'GB' })).toThrow(
      /a unit of bytes \(TiB, GiB, MiB, KiB, B\), not 'GB'/,
    );
  });

  it('writes fractions as percent and factors with a times sign', () => {
    expect(formatPercent(0.5823)).toBe('58.2 %');
    expect(formatPercent(1)).toBe('100 %');
    // Of one percent and more three significant digits; below it two decimals.
    expect([0.01, 0.009999, 0.012345, 0.123456, 12.5].map((each) => formatPercent(each))).toEqual([
      '1.00 %',
      '1.00 %',
      '1.23 %',
      '12.3 %',
      '1250 %',
    ]);
    // 0.005 % is the least that rounds up to what two decimals show.
    expect([0.00005, 0.000049, -0.000049, -0.00005].map((each) => formatPercent(each))).toEqual([
      '0.01 %',
      '<0.01 %',
      '>-0.01 %',
      '-0.01 %',
    ]);
    expect([NaN, -Infinity].map((each) => formatPercent(each))).toEqual(['NaN %', '-∞ %']);
    expect([0.00788, 0].map((each) => formatPercent(each, 4))).toEqual(['0.7880 %', '0.000 %']);
    expect([0.995, 0.9949, -0.58, -0.998, 0, 1].map((factor) => formatRatio(factor))).toEqual([
      '0.995×',
      '0.99×',
      '-0.58×',
      '-0.998×',
      '0.0×',
      '1.00×',
    ]);
    expect(formatRatio(1.04217, 4)).toBe('1.042×');
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
    [12.3456, 0.199, '12.3 ± 0.2'],
    [12.3456, 0.0996, '12.35 ± 0.10'],
    [12.3456, 0.1, '12.35 ± 0.10'],
    [12.3456, 0.2, '12.3 ± 0.2'],
    [12.3456, 1.4, '12.3 ± 1.4'],
    [12.3456, 2.4, '12 ± 2'],
    [123456, 78, '123,456 ± 78'],
    [0, 0.5, '0.0 ± 0.5'],
    [5.5, NaN, '5.50 ± NaN'],
    [5.5, -1, '5.50 ± -1'],
    [NaN, 0.5, 'NaN ± 0.500'],
    [Infinity, 0.5, '∞ ± 0.500'],
    [5.5, Infinity, '5.50 ± ∞'],
    // What rounding leaves of equal samples is no deviation.
    [1, 3e-14, '1 ± 0'],
    [-1, 3e-14, '-1 ± 0'],
    [-12.3456, 0.42, '-12.3 ± 0.4'],
    [0.1, 1.4e-17, '0.100 ± 0'],
    [0, 3e-14, '0 ± 3.00e-14'],
    [3e-12, 4e-14, '3.00e-12 ± 4.00e-14'],
    [1e15, 1e14, '1.00e+15 ± 1.00e+14'],
    [2e14, 1e15, '2.00e+14 ± 1.00e+15'],
    [3e-10, 4e-12, '0.000000000300 ± 0.000000000004'],
  ])('%d and %d are %s', (value, deviation, text) => expect(formatUncertain(value, deviation)).toBe(text));

  it('scales value and deviation alike', () => {
    expect(formatMeasured(0.0123, { kind: 'duration' }, 0.0004)).toBe('12.3 ± 0.4 µs');
    expect(formatMeasured(0.58, { kind: 'percent' }, 0.004)).toBe('58.0 ± 0.4 %');
  });

  it('takes digits where there is no spread', () => {
    expect(formatUncertain(5.4321, 0, 2)).toBe('5.4 ± 0');
    expect(formatMeasured(0.58, { kind: 'ratio' }, 0.1)).toBe('0.58 ± 0.10×');
  });
});

describe('the unit', () => {
  const kinds = ['text', 'number', 'ratio', 'percent', 'bytes', 'duration', 'status'] as const;

  it('of a heading is the one of the column, but for factors and shares, which carry their own', () => {
    const units = kinds.map((kind) => headingUnit({ kind, unit: 'MiB' }));
    expect(units).toEqual(['MiB', 'MiB', undefined, undefined, 'MiB', 'MiB', 'MiB']);
    expect(headingUnit({ kind: 'bytes' })).toBeUndefined();
  });

  it('of raw values is the one they are kept in, whatever is shown', () => {
    const units = kinds.map((kind) => rawUnit({ kind, unit: 'GiB' }));
    expect(units).toEqual(['GiB', 'GiB', undefined, 'fraction', 'bytes', 'ms', 'GiB']);
    expect(rawUnit({ kind: 'number' })).toBeUndefined();
  });

  it('of a duration is one of four', () => {
    expect(() => formatMeasured(1, { kind: 'duration', unit: 'h' })).toThrow(
      "formatMeasured: column.unit must be a unit of duration (s, ms, µs, ns), not 'h'",
    );
    expect(formatMeasured(5, { kind: 'number', unit: 'h' })).toBe('5');
  });
});
