import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeElementwise, describeMatmul, describeReductions } from '../op-cases/generic.ts';

const cuda = () => device('cuda');

describe('element-wise ops on CUDA', () => describeElementwise(cuda, { float64: true }));
describe('reductions on CUDA', () => describeReductions(cuda));
describe('matmul on CUDA', () => describeMatmul(cuda));
