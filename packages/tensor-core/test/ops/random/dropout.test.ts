import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeDropout } from '../../op-cases/random/dropout.ts';

describe('dropout on the CPU', () => {
  describeDropout(() => device('cpu'));
});
