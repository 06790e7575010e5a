import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeSigmoid } from '../../op-cases/elementwise/sigmoid.ts';

describe('sigmoid on the CPU', () => {
  describeSigmoid(() => device('cpu'));
});
