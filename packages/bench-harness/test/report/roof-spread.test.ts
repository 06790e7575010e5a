import { renderTerminal, type Column } from '@roofline/reports';
import { expect, it } from 'vitest';
import { higherOf } from '../../src/device/prepare-device.ts';
import { ceilingsSpread } from '../../src/measuring/ceilings.ts';
import { ceilingFacts } from '../../src/report/environment-facts.ts';
import { withRoofSpread } from '../../src/report/declared-table.ts';
import { toyRecord } from '../fixtures/records.ts';

const ceilings = {
  matmulFlopsPerSecond: { float32: 1e12 },
  copyBytesPerSecond: 1e11,
  spread: { matmulFlopsPerSecond: { float32: 0.01 }, copyBytesPerSecond: 0.03 },
};
const column: Column = { key: 'share', label: 'Of the roof', kind: 'percent', emphasis: 'roof' };

it('lets tables say what is at the roof, and what above it', () => {
  const columns = withRoofSpread([column], [toyRecord({}, { ceilings }), toyRecord()]);
  expect(columns).toEqual([{ ...column, spread: 0.03 }]);
  const rows = [0.5, 0.98, 1.02, 1.2].map((share) => ({ share }));
  const text = renderTerminal({ kind: 'table', id: 't', title: 'T', columns, rows }, { width: 80 });
  expect(
    text
      .split('\n')
      .slice(3, 7)
      .map((line) => line.trim()),
  ).toEqual(['50.0 %', 'at the roof', 'at the roof', '120 %, above the roof']);
  expect(withRoofSpread([column], [toyRecord()])).toEqual([column]);
});

it('is stated in the environment, with the ceilings', () => {
  expect(ceilingsSpread(ceilings)).toBe(0.03);
  const disturbed = { ...ceilings.spread, copyBytesPerSecond: 0.35 };
  expect(ceilingsSpread({ ...ceilings, spread: disturbed })).toBe(0.05);
  expect(ceilingFacts(ceilings)).toEqual([
    [
      'Matrix product ceiling, float32',
      '1.00 TFLOP/s, the best of several sizes and ways; its median run is 1.00 % below',
    ],
    ['Copy ceiling', '100 GB/s, the best of several sizes and ways; its median run is 3.00 % below'],
  ]);
});

it('follows the ceiling that counts when more are measured', () => {
  const bfloat16 = {
    matmulFlopsPerSecond: { bfloat16: 8e12 },
    copyBytesPerSecond: 0.9e11,
    spread: { matmulFlopsPerSecond: { bfloat16: 0.02 }, copyBytesPerSecond: 0.05 },
  };
  expect(higherOf(ceilings, bfloat16)).toEqual({
    matmulFlopsPerSecond: { float32: 1e12, bfloat16: 8e12 },
    copyBytesPerSecond: 1e11,
    spread: { matmulFlopsPerSecond: { float32: 0.01, bfloat16: 0.02 }, copyBytesPerSecond: 0.03 },
  });
  expect(higherOf(ceilings, { ...bfloat16, copyBytesPerSecond: 2e11 }).spread!.copyBytesPerSecond).toBe(0.05);
});
