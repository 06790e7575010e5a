import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeElementwise, describeMatmul, describeReductions } from '../op-cases/generic.ts';

const cpu = () => device('cpu');

describe('element-wise ops on the CPU', () => describeElementwise(cpu, { float64: true }));
describe('reductions on the CPU', () => describeReductions(cpu));
describe('matmul on the CPU', () => describeMatmul(cpu));
