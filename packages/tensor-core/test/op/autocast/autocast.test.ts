import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeAutocast } from '../../op-cases/autocast.ts';

describe('autocast on the CPU', () => {
  describeAutocast(() => device('cpu'));
});
