import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeTriangles } from '../../op-cases/shape/tril.ts';

describe('tril on the CPU', () => {
  describeTriangles(() => device('cpu'));
});
