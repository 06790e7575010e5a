import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeJointCrossEntropy } from '../program/join-cross-entropy-cases.ts';

describe('a loss and the gradient of its logits in one, on CUDA', () =>
  describeJointCrossEntropy(() => device('cuda')));
