import { expect, it } from 'vitest';
import { stepParameters, type E2eCell } from '../../src/benchmarks/e2e/parameters.ts';
import * as parameters from '../../src/parameters/cell-names.ts';
import { toyCell } from '../fixtures/records.ts';

const cellNames = (cells: readonly E2eCell[], keys?: readonly (keyof E2eCell)[]) =>
  parameters.cellNames(stepParameters, cells, keys);

it('names one cell by its size, and tells the rest apart', () => {
  const names = cellNames([toyCell]);
  expect(names.name(toyCell)).toBe('small');
  expect(names.shared).toBe('context 16, batch 2, train-step, float32');
});

it('names cells by what is swept', () => {
  const other = { ...toyCell, context: 32, dtype: 'bfloat16' as const };
  const names = cellNames([toyCell, other]);
  expect(names.name(other)).toBe('small, context 32, bfloat16');
  expect(names.shared).toBe('batch 2, train-step');
  expect(cellNames([toyCell, other], ['size', 'context']).name(toyCell)).toBe('small, context 16');
});

it("says once which of PyTorch's attentions is compared with each of ours", () => {
  const plain = { ...toyCell, attention: 'plain' as const, peerAttention: 'plain' as const };
  const flash = { ...toyCell, attention: 'flash' as const, peerAttention: 'sdpa' as const };
  const names = cellNames([plain, flash]);
  expect(names.name(flash)).toBe('small, flash attention');
  expect(names.shared).toBe(
    "context 16, batch 2, train-step, float32, plain vs PyTorch's plain attention, flash vs PyTorch's sdpa attention",
  );
  const other = { ...flash, peerAttention: 'plain' as const };
  expect(cellNames([plain, flash, other]).name(flash)).toBe(
    "small, flash attention, PyTorch's sdpa attention",
  );
});
