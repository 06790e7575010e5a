import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeNorms } from '../../op-cases/nn/norm.ts';

describe('norm on the CPU', () => {
  describeNorms(() => device('cpu'));
});
