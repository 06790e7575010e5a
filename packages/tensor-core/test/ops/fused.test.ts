import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeFused } from '../op-cases/fused.ts';

describe('fused ops on the CPU', () => {
  describeFused(() => device('cpu'));
});
