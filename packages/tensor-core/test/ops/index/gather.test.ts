import { describe, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { describeGather } from '../../op-cases/index/gather.ts';
import { sample, tensorOf } from '../../op-cases/support/samples.ts';

const cpu = () => t.device('cpu');

describe('gather on the CPU', () => {
  describeGather(cpu);

  it('has the gradient that finite differences show', () => {
    t.scope(() => {
      const index = tensorOf([2, 0, 2, 1], [2, 2], 'int64', cpu());
      t.checkGradients((x) => t.sin(t.gather(x, 1, index)), [sample([2, 3], { dtype: 'float64' }, cpu())]);
    });
  });
});
