import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeCreation } from '../../op-cases/shape/shape-and-creation.ts';

describe('eye and linspace on the CPU', () => {
  describeCreation(() => device('cpu'));
});
