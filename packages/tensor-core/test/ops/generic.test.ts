// Is alone in a process: ops run in as many threads as there are cores.
import { describe, expect, it } from 'vitest';
import { add, device, greater, scope, tensor } from '../../src/index.ts';
import { describeElementwise, describeMatmul, describeReductions } from '../op-cases/generic.ts';

const cpu = () => device('cpu');

describe('element-wise ops on the CPU', () => describeElementwise(cpu, { float64: true }));
describe('reductions on the CPU', () => describeReductions(cpu));
describe('matmul on the CPU', () => describeMatmul(cpu));

describe('numbers with narrower tensors', () => {
  it('keep their value', () => {
    scope(() => expect(add(tensor([0, 1], { dtype: 'bool' }), 2).toFlatArray()).toEqual([2, 3]));
    scope(() => expect(greater(tensor([0, 1], { dtype: 'int64' }), 0.5).toFlatArray()).toEqual([0, 1]));
  });
});
