import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeVariance } from '../../op-cases/variance.ts';

describe('variance on the CPU', () => {
  describeVariance(() => device('cpu'));
});
