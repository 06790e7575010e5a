import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeCumsum } from '../../op-cases/reduce/cumsum.ts';

describe('cumsum on the CPU', () => {
  describeCumsum(() => device('cpu'));
});
