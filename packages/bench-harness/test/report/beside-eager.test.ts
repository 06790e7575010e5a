import { describe, expect, it } from 'vitest';
import { besideEagerColumns } from '../../src/report/beside-eager.ts';
import { achievedColumns } from '../../src/report/standard-columns.ts';

const way = (wallMs: number) => ({ deviceMs: [wallMs], wallMs: [wallMs], peakBytes: 1 });

describe('compiling', () => {
  it('pays after the calls that have saved all that it took, and never where nothing is saved', () => {
    const { value } = besideEagerColumns.find(({ key }) => key === 'paysAfter')!;
    const paysAfter = (compiledMs: number, durationMs: number) =>
      value({
        ...{ eager: way(10), compiled: way(compiledMs) },
        compilation: { durationMs } as NonNullable<Parameters<typeof value>[0]['compilation']>,
      });
    expect([paysAfter(6, 8), paysAfter(6, 9), paysAfter(10, 9), paysAfter(11, 9)]).toEqual([
      2,
      3,
      null,
      null,
    ]);
    expect(value({ eager: way(10), compiled: way(6), compilation: null })).toBeNull();
  });
});

describe('what is achieved', () => {
  it('is in TFLOP/s where a row reaches one of them, else in GFLOP/s', () => {
    const columns = achievedColumns<number>((rate) => rate, '');
    const unitOf = (...rates: number[]) =>
      columns
        .filter(({ shown }) => typeof shown === 'function' && shown(rates))
        .map(({ unit, value }) => [unit, value(rates[0]!)]);
    expect(unitOf(5e11, 1e12)).toEqual([['TFLOP/s', 0.5]]);
    expect(unitOf(5e11, 9.99e11)).toEqual([['GFLOP/s', 500]]);
  });
});
