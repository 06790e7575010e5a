import { describe, expect, it } from 'vitest';
import { fusePointwise } from '../../../src/compile/passes/fuse-pointwise.ts';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { openPlanningDevice } from '../../../src/testing.ts';
import { graphOf } from '../traced-graph.ts';
import { namesAfter } from './names-after.ts';

// What random programs do not meet: one condition that decides.
describe('fusePointwise, where one condition decides', () => {
  const device = openPlanningDevice();
  const tensor = (shape: readonly number[]) => t.zeros(shape, { device });
  const names = (fn: () => readonly Tensor[]) => namesAfter(device, fusePointwise, fn);
  const [x, y] = [tensor([4, 8]), tensor([4, 8])];
  it('takes eight inputs, each of them once', () => {
    const summands = Array.from({ length: 8 }, () => tensor([4, 8]));
    const sumOf = (count: number) => () => {
      const own = t.softmax(x, -1);
      for (const summand of summands.slice(0, count)) t.addInPlace(own, summand);
      return [own];
    };
    expect(names(sumOf(7))).toHaveLength(2);
    expect(names(sumOf(8))).toHaveLength(3);
    const { graph } = graphOf(() => [t.mul(t.add(t.mul(x, x), x), x)]);
    expect(fusePointwise(graph).calls.map(({ inputs }) => inputs.length)).toEqual([1]);
  });
  it('keeps after a group what writes anew what that has written', () => {
    const fresh = t.defineOp<undefined>({
      name: 'fresh',
      autocast: 'none',
      infer: ([a]) => [a!],
      cuda: { kind: 'custom', launch: () => {} },
    });
    const found = names(() => {
      const total = t.neg(t.add(x, y));
      t.noGrad(() => t.apply(fresh, [x], undefined, [total]));
      return [total];
    });
    expect(found).toEqual(['fused_add_neg', 'fresh']);
  });
  it('takes ten operands in all', () => {
    const summands = Array.from({ length: 5 }, () => tensor([4, 8]));
    expect(names(() => [t.neg(summands.reduce((a, b) => t.add(a, b)))])).toHaveLength(1);
  });
  it('keeps after a group what writes one of several that it reads', () => {
    const found = names(() => {
      const own = t.softmax(x, -1);
      const total = t.neg(t.add(y, own));
      t.fillInPlace(t.slice(own, 0, 0, 1), 1);
      return [total, own];
    });
    expect(found).toEqual(['softmax', 'fused_add_neg']);
  });
  it('keeps after a group what writes what that has written', () => {
    const found = names(() => {
      const total = t.neg(t.add(x, y));
      t.fillInPlace(t.slice(total, 0, 0, 1), 1);
      return [total];
    });
    expect(found).toEqual(['fused_add_neg']);
  });
  it('makes no kernel of what nobody needs', () => {
    const found = names(() => {
      t.exp(t.neg(x));
      return [t.softmax(y, -1)];
    });
    expect(found).toEqual(['softmax', 'neg', 'exp']);
  });
  it('keeps after a group what writes, as one of two results, over what that reads in another layout', () => {
    const both = t.defineOp<undefined>({
      name: 'both',
      autocast: 'none',
      infer: ([a, b]) => [a!, b!],
      cuda: { kind: 'pointwise', expressions: () => ['a + b', 'a * b'] },
      cpu: { kind: 'host', run: () => {} },
    });
    const [a, b] = [tensor([8, 8]), tensor([8, 8])];
    const found = (over: (own: Tensor) => Tensor) =>
      names(() => {
        const [own, other] = [t.softmax(a, -1), t.softmax(b, -1)];
        const read = t.neg(over(own));
        t.noGrad(() => t.apply(both, [a, b], undefined, [other, own]));
        return [read, own, other];
      });
    expect(found((own) => own)).toEqual(['softmax', 'softmax', 'fused_neg_both']);
    expect(found((own) => t.transpose(own))).toEqual(['softmax', 'softmax', 'neg', 'both']);
  });
  it('makes no kernel that calculates in less than its parts', () => {
    expect(names(() => [t.cast(t.cast(x, 'float64'), 'float32')])).toEqual(['cast', 'cast']);
  });
});
