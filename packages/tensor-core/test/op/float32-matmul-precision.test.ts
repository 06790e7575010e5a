import { afterEach, expect, it } from 'vitest';
import {
  getFloat32MatmulPrecision,
  setFloat32MatmulPrecision,
} from '../../src/op/float32-matmul-precision.ts';

afterEach(() => setFloat32MatmulPrecision('highest'));

it('is full float32 unless asked otherwise', () => {
  expect(getFloat32MatmulPrecision()).toBe('highest');
  setFloat32MatmulPrecision('high');
  expect(getFloat32MatmulPrecision()).toBe('high');
});

it('names a precision that does not exist', () => {
  expect(() => setFloat32MatmulPrecision('medium' as never)).toThrow(/"medium"/);
});
