import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeSoftmax } from '../../op-cases/nn/softmax.ts';

describe('softmax on the CPU', () => {
  describeSoftmax(() => device('cpu'));
});
