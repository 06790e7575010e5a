import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeEinsum, describeEinsumGradients } from '../../op-cases/matrix/einsum.ts';

describe('einsum on the CPU', () => {
  describeEinsum(() => device('cpu'));
  describeEinsumGradients(() => device('cpu'));
});
