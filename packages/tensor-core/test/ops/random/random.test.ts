import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeRandom } from '../../op-cases/random/random.ts';

describe('random on the CPU', () => {
  describeRandom(() => device('cpu'));
});
