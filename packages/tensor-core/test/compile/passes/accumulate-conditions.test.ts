import { describe, expect, it } from 'vitest';
import { accumulateProducts } from '../../../src/compile/passes/accumulate-products.ts';
import { joinCrossEntropy } from '../../../src/compile/passes/join-cross-entropy.ts';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { graphOf } from '../traced-graph.ts';
import { namesAfter } from './names-after.ts';

describe('where one condition decides', () => {
  const device = openPlanningDevice();
  const tensor = (shape: readonly number[], dtype: DType = 'bfloat16') => t.zeros(shape, { device, dtype });

  describe('accumulateProducts', () => {
    const [x, w, c] = [tensor([4, 8]), tensor([8, 8]), tensor([4, 8])];
    it.each<[string, string[], () => Tensor]>([
      [
        'not of a product that lies across',
        ['matmul', 'add'],
        () => t.add(t.transpose(t.matmul(x, tensor([8, 4]))), tensor([4, 4])),
      ],
      ['not of a row of it', ['matmul', 'add'], () => t.add(t.slice(t.matmul(x, w), 0, 0, 1), c)],
      [
        'not of what another dtype has rounded',
        ['matmul', 'cast', 'add'],
        () => t.add(t.cast(t.matmul(x, w), 'float16'), tensor([4, 8], 'float32')),
      ],
      [
        'not of what is widened by a product of elements',
        ['matmul', 'mul', 'add'],
        () => t.add(t.mul(t.matmul(x, w), tensor([4, 8], 'float32')), tensor([4, 8], 'float32')),
      ],
    ])('%s', (_, expected, fn) => {
      expect(namesAfter(device, accumulateProducts, () => [fn()])).toEqual(expected);
    });
    it('of two products the later one, so that the first is not kept waiting', () => {
      const [wide, long] = [tensor([4, 16]), tensor([16, 8])];
      const { graph } = graphOf(() => [t.add(t.matmul(wide, long), t.matmul(x, w))]);
      const left = accumulateProducts(graph).calls.map(({ op, inputs }) => [op.name, inputs[0]!.shape]);
      expect(left).toEqual([
        ['matmul', [4, 16]],
        ['addmm', [4, 8]],
      ]);
    });
  });

  describe('joinCrossEntropy', () => {
    const classes = tensor([3], 'int64');
    const names = (dtype: DType, lossOf: (logits: Tensor) => Tensor) => {
      const logits = tensor([3, 4], dtype).requiresGrad_();
      return namesAfter(device, joinCrossEntropy, () => {
        logits.grad = null;
        const loss = lossOf(logits);
        loss.backward();
        return [loss.detach(), logits.grad!.detach()];
      });
    };
    it('drops a cast of all logits from low precision, and no other', () => {
      expect(names('bfloat16', (x) => t.crossEntropy(t.cast(x, 'float32'), classes))).toEqual([
        'fused_cast_crossEntropy_fill__crossEntropyBackward_cast',
      ]);
      expect(names('bfloat16', (x) => t.crossEntropy(t.cast(x, 'float64'), classes))).toEqual([
        'cast',
        'fused_crossEntropy_fill__crossEntropyBackward',
        'cast',
      ]);
      expect(names('float64', (x) => t.crossEntropy(t.cast(x, 'float32'), classes))).toEqual([
        'cast',
        'fused_crossEntropy_fill__crossEntropyBackward',
        'cast',
      ]);
    });
    it('drops no cast of more rows than it is of', () => {
      const found = names('bfloat16', (x) =>
        t.crossEntropy(t.slice(t.cast(x, 'float32'), 0, 0, 2), tensor([2], 'int64')),
      );
      expect(found[0]).toBe('cast');
    });
    it('drops no op that is no cast', () => {
      expect(names('float32', (x) => t.crossEntropy(t.neg(x), classes))).toEqual([
        'neg',
        'fused_crossEntropy_fill__crossEntropyBackward',
        'neg',
      ]);
    });
  });
});
