import { expect, it } from 'vitest';
import { MemoryRoom } from '../../../src/compile/cuda/memory-room.ts';

const kibibyte = 1024;

it('room is taken for all parts or for none, up to the last byte', () => {
  const room = new MemoryRoom([{ byteLength: 6 * kibibyte, first: 2, last: 4 }], 10 * kibibyte);
  const part = (byteLength: number, first: number, last: number) => ({ byteLength, first, last });
  expect(room.take([part(kibibyte, 0, 1), part(5 * kibibyte, 4, 6)])).toBe(false);
  expect(room.take([part(5 * kibibyte, 4, 6), part(kibibyte, 0, 1)])).toBe(false);
  // What was refused has taken nothing.
  expect(room.take([part(4 * kibibyte, 4, 6), part(10 * kibibyte, 0, 1)])).toBe(true);
  expect(room.take([part(1, 4, 4)])).toBe(false);
  expect(room.take([part(1, 1, 1)])).toBe(false);
  expect(room.take([part(4 * kibibyte, 2, 3), part(6 * kibibyte, 5, 6)])).toBe(true);
  expect(room.take([])).toBe(true);
});
