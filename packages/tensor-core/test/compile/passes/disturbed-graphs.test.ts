import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Tensor } from '../../../src/index.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { failingPass } from '../symbolic/check-passes.ts';
import { disturbedGraphs } from '../symbolic/disturbed-graphs.ts';
import { graphOf } from '../traced-graph.ts';

// Programs of which each pass makes something, in what else may be around them: a pass that overlooks it leaves other values.
describe('passes leave what a graph leaves, whatever is around what they look for', () => {
  const device = openPlanningDevice();
  const tensor = (shape: readonly number[], dtype: DType = 'float32') => t.zeros(shape, { device, dtype });
  const leaf = (shape: readonly number[], dtype: DType = 'float32') => tensor(shape, dtype).requiresGrad_();
  const low = 'bfloat16';
  const [table, weight, ids] = [tensor([6, 8]), tensor([8]), tensor([4], 'int64')];
  const [x, w, c] = [tensor([4, 8], low), tensor([8, 8], low), tensor([4, 8], low)];
  const angles = tensor([2, 4]);

  /** What a loss leaves: itself, and the gradient of its leaf. */
  const trained = (parameter: Tensor, lossOf: (x: Tensor) => Tensor, above?: () => Tensor) => () => {
    parameter.grad = null;
    const loss = lossOf(parameter);
    loss.backward(above?.());
    return [loss.detach(), parameter.grad!.detach()];
  };
  const classes = tensor([3], 'int64');

  it.each<[string, () => readonly Tensor[]]>([
    ['a product and its sum', () => [t.add(t.matmul(x, w), c)]],
    ['a product that is widened for a sum', () => [t.add(t.cast(t.matmul(x, w), 'float32'), tensor([4, 8]))]],
    ['two products', () => [t.add(t.matmul(x, w), t.matmul(c, w))]],
    [
      'projections of one activation',
      () => {
        const [v, u] = [t.cast(tensor([8, 8]), low), t.cast(tensor([8, 8]), low)];
        return [t.mul(t.silu(t.linear(x, v)), t.neg(t.linear(x, u)))];
      },
    ],
    [
      'gradients of an activation',
      () => {
        const stacked = t.mul(tensor([16, 8], low), 2);
        const sum = t.matmul(t.neg(x), t.slice(stacked, 0, 0, 8));
        t.addInPlace(sum, t.matmul(t.neg(c), t.slice(stacked, 0, 8, 16)));
        return [sum];
      },
    ],
    ['a loss and its gradient', trained(leaf([3, 4]), (logits) => t.crossEntropy(logits, classes))],
    [
      'a loss of logits that are cast',
      trained(leaf([3, 4], low), (logits) => t.crossEntropy(t.cast(logits, 'float32'), classes)),
    ],
    [
      'a loss with a gradient from above',
      trained(
        leaf([3, 4]),
        (logits) => t.crossEntropy(logits, classes),
        () => t.neg(tensor([])),
      ),
    ],
    [
      'the gradient of an embedding, added',
      () => {
        const own = leaf([6, 4]);
        const total = t.mul(tensor([6, 4]), 2);
        t.embedding(own, ids).backward(tensor([4, 4]));
        t.noGrad(() => t.addInPlace(total, own.grad!));
        return [total];
      },
    ],
    ['a copy of heads', () => [t.contiguous(t.transpose(t.neg(tensor([2, 3, 4])), 0, 1))]],
    [
      'two rotations',
      () => [t.rope(tensor([1, 2, 8]), angles, angles), t.rope(tensor([1, 2, 8]), angles, angles)],
    ],
    [
      'element-wise ops',
      () => {
        const y = t.add(t.mul(weight, 2), tensor([8]));
        t.addInPlace(y, weight);
        return [t.silu(t.neg(y))];
      },
    ],
    ['a norm between element-wise ops', () => [t.mul(t.rmsNorm(t.mul(table, 2), weight), 3)]],
    ['a norm of what is looked up', () => [t.mul(t.rmsNorm(t.embedding(table, ids), weight), 2)]],
    [
      "norms' gradients",
      () => {
        const [first, second, rows] = [leaf([4]), leaf([4]), tensor([2, 4])];
        for (const each of [first, second]) t.rmsNorm(rows, each).backward(rows);
        return [first.grad!.detach(), second.grad!.detach()];
      },
    ],
    ['calls that repeat', () => [t.add(t.softmax(table, -1), t.mul(t.softmax(table, -1), 2))]],
  ])('%s', (_, fn) => {
    const failures = disturbedGraphs(graphOf(fn).graph).flatMap(({ change, graph }) => {
      const failure = failingPass(graph, device.facts);
      return failure === null ? [] : [`${change}: ${failure}`];
    });
    expect(failures).toEqual([]);
  });
});
