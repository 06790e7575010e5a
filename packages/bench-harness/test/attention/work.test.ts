import { expect, it } from 'vitest';
import { describeShape, type AttentionShape } from '../../src/attention/shape.ts';
import { attentionFlops, attentionWork } from '../../src/attention/work.ts';

const shape: AttentionShape = { batch: 2, heads: 3, headDimension: 8, sequence: 16, dtype: 'bfloat16' };

it('counts half of the products forward, and 2.5 times that backward', () => {
  const forward = (2 * 2 * 3 * 16 * 16 * 8 * 2) / 2;
  expect(attentionFlops(shape, 'forward')).toBe(forward);
  expect(attentionFlops({ ...shape, mask: 'full' }, 'forward')).toBe(2 * forward);
  expect(attentionFlops(shape, 'backward')).toBe(2.5 * forward);
  expect(attentionFlops(shape, 'both')).toBe(3.5 * forward);
});

it('gives the leaderboard its published FLOPs', () => {
  const case_ = { ...shape, batch: 1, heads: 16, headDimension: 64, sequence: 16384 };
  // 16 heads · 4 · 16384² · 64 / 2 · 3.5
  expect(attentionFlops(case_, 'both')).toBe(1_924_145_348_608);
});

it('moves operands and results once: four tensors forward, eight backward', () => {
  const tensorBytes = 2 * 3 * 16 * 8 * 2;
  expect(attentionWork(shape, 'both').map(({ bytes }) => bytes)).toEqual([4 * tensorBytes, 8 * tensorBytes]);
  expect(attentionWork({ ...shape, dtype: 'float32' }, 'forward')[0]!.bytes).toBe(8 * tensorBytes);
});

it('names shapes, heads only where there are several', () => {
  expect(describeShape(shape)).toBe('d 8 · sequence 16 · batch 2 · 3 heads · bfloat16');
  expect(describeShape({ ...shape, mask: 'full' })).toBe(
    'd 8 · sequence 16 · batch 2 · 3 heads · full · bfloat16',
  );
  expect(describeShape({ ...shape, heads: 1 })).toBe('d 8 · sequence 16 · batch 2 · bfloat16');
});
