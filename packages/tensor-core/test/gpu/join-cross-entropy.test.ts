import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeJointCrossEntropy } from '../compile/passes/join-cross-entropy-cases.ts';

describe('a loss and the gradient of its logits in one, on CUDA', () =>
  describeJointCrossEntropy(() => device('cuda')));
