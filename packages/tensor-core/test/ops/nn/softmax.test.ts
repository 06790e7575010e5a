import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeSoftmax } from '../../op-cases/softmax.ts';

describe('softmax on the CPU', () => {
  describeSoftmax(() => device('cpu'));
});
