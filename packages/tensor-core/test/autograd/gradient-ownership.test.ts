import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';

const leaf = (values: t.NestedNumbers) => t.tensor(values, { dtype: 'float64', requiresGrad: true });
const values = (x: t.Tensor) => [...(x.toTypedArray() as Float64Array)];

describe('gradients', () => {
  it('that reach several leaves, or came from outside, are added to nowhere else', () => {
    t.scope(() => {
      const [x, y] = [leaf([1, 2]), leaf([3, 4])];
      const g = t.tensor([1, 10], { dtype: 'float64' });
      for (const pass of [1, 2]) {
        t.add(x, y).backward(g);
        expect([values(x.grad!), values(y.grad!), values(g)]).toEqual([
          [pass, 10 * pass],
          [pass, 10 * pass],
          [1, 10],
        ]);
      }
      expect(x.grad!.storage).not.toBe(y.grad!.storage);
    });
  });

  it('are contiguous, whatever layout they arrive in', () => {
    t.scope(() => {
      const x = leaf([
        [1, 2, 3],
        [4, 5, 6],
      ]);
      t.mul(t.transpose(x), 2).backward(
        t.tensor(
          [
            [1, 2],
            [3, 4],
            [5, 6],
          ],
          { dtype: 'float64' },
        ),
      );
      expect(x.grad!.isContiguous).toBe(true);
      expect(values(x.grad!)).toEqual([2, 6, 10, 4, 8, 12]);
    });
  });

  it('are computed in the dtypes of the forward pass, also when backward is called inside autocast', () => {
    t.scope(() => {
      const fine = 1 + 2 ** -12;
      const x = t.full([1, 1], fine, { requiresGrad: true });
      const w = t.full([1, 1], fine, { requiresGrad: true });
      const y = t.matmul(x, w);
      t.autocast('bfloat16', () => y.backward());
      expect([x.grad!.item(), w.grad!.item()]).toEqual([fine, fine]);
    });
  });

  it('are freed as soon as they have been used', () => {
    const cpu = t.device('cpu');
    t.scope(() => {
      const x = t.ones([2 ** 16], { requiresGrad: true });
      let y = t.mul(x, 1);
      for (let i = 0; i < 20; i++) y = t.mul(y, 1);
      const loss = t.sum(y);
      const before = cpu.allocatedBytes;
      cpu.resetPeakMemory();
      loss.backward();
      // The incoming gradient, the outgoing one, and a little for scalars.
      expect(cpu.memoryStatistics().peakAllocatedBytes - before).toBeLessThan(3.5 * x.byteLength);
    });
  });

  it('of one output alone leave the others out', () => {
    t.scope(() => {
      const x = leaf([1, 2, 3, 4]);
      const halves = t.defineFunction<t.Tensor[]>({
        name: 'halves',
        forward: (_, a) => [t.copy(t.slice(a!, 0, 0, 2)), t.copy(t.slice(a!, 0, 2, 4))],
        backward: (_, first, second) => t.concat([first ?? t.zeros([2], { dtype: 'float64' }), second!]),
      });
      const [, second] = halves(x) as [t.Tensor, t.Tensor];
      t.sum(t.mul(second, 3)).backward();
      expect(values(x.grad!)).toEqual([0, 0, 3, 3]);
    });
  });
});
