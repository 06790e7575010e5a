import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeExtrema, describeExtremaGradients } from '../../op-cases/reduce/extrema.ts';

describe('extrema on the CPU', () => {
  describeExtrema(() => device('cpu'));
  describeExtremaGradients(() => device('cpu'));
});
