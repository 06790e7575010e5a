import { describe, expect, it } from 'vitest';
import { Generator, OutOfMemoryError, device, dropout, empty, scope } from '../../../src/index.ts';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';
import { describeDropout } from '../../op-cases/random/dropout.ts';

describe('dropout on the CPU', () => {
  describeDropout(() => device('cpu'));
});

it('dropout for which there is no memory takes no random numbers', () => {
  const gpu = openEmulatedDevice(2 ** 25);
  const generator = new Generator(1, 5);
  scope(() => {
    const x = empty([2 ** 23 + 1], { device: gpu, dtype: 'float16' });
    expect(() => dropout(x, { generator })).toThrow(OutOfMemoryError);
  });
  expect(generator.offset).toBe(5);
});
