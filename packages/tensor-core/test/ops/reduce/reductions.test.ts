import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeReduce } from '../../op-cases/reduce/reduce.ts';

describe('reductions on the CPU', () => {
  describeReduce(() => device('cpu'));
});
