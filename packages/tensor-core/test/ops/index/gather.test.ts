import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { describeGather } from '../../op-cases/gather.ts';
import { sample, tensorOf } from '../../op-cases/samples.ts';

const cpu = () => t.device('cpu');

describe('gather on the CPU', () => {
  describeGather(cpu);

  it('has the gradient that finite differences show', () => {
    t.scope(() => {
      const index = tensorOf([2, 0, 2, 1], [2, 2], 'int64', cpu());
      t.checkGradients((x) => t.sin(t.gather(x, 1, index)), [sample([2, 3], { dtype: 'float64' }, cpu())]);
    });
  });

  it('names an index outside', () => {
    t.scope(() => {
      const index = tensorOf([0, 3], [2, 1], 'int64', cpu());
      expect(() => t.gather(sample([2, 3], {}, cpu()), 1, index)).toThrow('index 3 at position 1 is outside');
    });
  });
});
