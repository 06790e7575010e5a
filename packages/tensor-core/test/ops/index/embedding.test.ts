import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeEmbedding } from '../../op-cases/index/embedding.ts';

describe('embedding on the CPU', () => {
  describeEmbedding(() => device('cpu'));
});
