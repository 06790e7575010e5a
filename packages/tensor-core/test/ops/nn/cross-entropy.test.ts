import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeCrossEntropy } from '../../op-cases/nn/cross-entropy.ts';

describe('cross-entropy on the CPU', () => {
  describeCrossEntropy(() => device('cpu'));
});
