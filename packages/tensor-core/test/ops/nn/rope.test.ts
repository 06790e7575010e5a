import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeRope } from '../../op-cases/nn/rope.ts';

describe('rope on the CPU', () => {
  describeRope(() => device('cpu'));
});
