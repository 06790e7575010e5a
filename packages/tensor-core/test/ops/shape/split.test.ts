import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeSplits } from '../../op-cases/shape/shape-and-creation.ts';

describe('flatten, split and chunk on the CPU', () => {
  describeSplits(() => device('cpu'));
});
