import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeVariance } from '../../op-cases/reduce/variance.ts';

describe('variance on the CPU', () => {
  describeVariance(() => device('cpu'));
});
