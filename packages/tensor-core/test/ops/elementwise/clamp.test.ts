import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeClamp, describeClampGradients } from '../../op-cases/elementwise/clamp.ts';

describe('clamp, abs and sign on the CPU', () => {
  describeClamp(() => device('cpu'));
  describeClampGradients(() => device('cpu'));
});
