import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeSwiglu } from '../../op-cases/nn/swiglu.ts';

describe('swiglu on the CPU', () => {
  describeSwiglu(() => device('cpu'));
});
