import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { readSnapshot, torchPython } from './snapshot-reader.ts';

it.skipIf(!torchPython)('is read by torch.cuda._memory_viz', () => {
  const record = t.recordMemory(function train() {
    return t.scope(() => t.range('forward', () => t.softmax(t.exp(t.ones([100, 10])), -1)));
  });
  const { live, actions, frames } = readSnapshot(t.memorySnapshot(record));
  expect(live).toEqual([4000]);
  expect(actions).toEqual(expect.arrayContaining(['alloc', 'free_requested', 'free_completed']));
  expect(frames.slice(0, 2)).toEqual(['softmax', 'range forward']);
  expect(frames.some((name) => name.includes('train'))).toBe(true);
  record.result.dispose();
});
