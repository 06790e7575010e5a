import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { partsOf } from '../../../src/compile/cuda/arena.ts';
import { fullestCall } from '../../../src/compile/cuda/arena-plan.ts';
import { rematerialize } from '../../../src/compile/passes/rematerialize.ts';
import { expectSameBits, graphOf, opNames } from '../traced-graph.ts';

describe('rematerialize', () => {
  const [x, w] = [t.ones([64, 64]), t.full([64, 64], 0.01)];
  const generator = new t.Generator(1);
  const needed = (graph: Parameters<typeof partsOf>[0]) => fullestCall(partsOf(graph)).bytes;
  const tensorBytes = 64 * 64 * 4;

  /** The names of ops after freeing one tensor at the fullest call, with the same results. */
  function relieved(fn: () => readonly Tensor[], tensors = 1): string[] {
    const traced = graphOf(fn);
    const before = needed(traced.graph);
    const { graph, bytes } = rematerialize(traced.graph, before - tensors * tensorBytes);
    expectSameBits(traced, graph);
    expect(bytes).toBe(needed(graph));
    expect(bytes).toBeLessThanOrEqual(before - tensors * tensorBytes);
    return opNames(graph);
  }

  /** Needs much memory in the middle. */
  const middle = (y: Tensor) => t.scope(() => t.sum(t.concat([y, y, y, y])));

  it('makes again what takes the fewest FLOPs', () => {
    const names = relieved(() => {
      const [dear, cheap] = [t.matmul(x, w), t.exp(x)];
      const total = middle(t.add(dear, cheap));
      return [t.mul(dear, total), t.mul(cheap, total)];
    });
    expect(names).toEqual(['matmul', 'exp', 'add', 'concat', 'sum', 'mul', 'exp', 'mul']);
  });

  it('makes again what that needs, too, where it is gone', () => {
    const names = relieved(() => {
      const chained = t.scope(() => t.tanh(t.exp(t.neg(x))));
      const total = middle(t.mul(chained, 2));
      return [t.mul(chained, total)];
    });
    expect(names).toEqual(['neg', 'exp', 'tanh', 'mul', 'concat', 'sum', 'neg', 'exp', 'tanh', 'mul']);
  });

  it('only moves what nothing reads before', () => {
    const names = relieved(() => {
      const later = t.matmul(x, w);
      const total = middle(t.exp(x));
      return [t.mul(later, total)];
    });
    expect(names).toEqual(['exp', 'concat', 'sum', 'matmul', 'mul']);
  });

  it.each<[string, () => readonly Tensor[]]>([
    [
      'operands that are written in between',
      () => {
        const source = t.copy(x);
        const y = t.exp(source);
        const total = middle(t.mul(y, 2));
        t.copyInPlace(source, w);
        return [t.mul(y, total), source];
      },
    ],
    [
      'results that are written later',
      () => {
        const y = t.exp(x);
        t.addInPlace(y, w);
        const total = middle(t.mul(y, 2));
        return [t.mul(y, total)];
      },
    ],
    [
      'what is kept',
      () => {
        const y = t.exp(x);
        return [t.mul(y, middle(t.mul(y, 2))), y];
      },
    ],
    ['what the fullest call reads', () => [t.concat([t.exp(x), t.exp(w)])]],
  ])('leaves %s', (_, fn) => {
    const traced = graphOf(fn);
    const { graph } = rematerialize(traced.graph, needed(traced.graph) - 1);
    expectSameBits(traced, graph);
    expect(opNames(graph)).toEqual(opNames(traced.graph));
  });

  it('draws random numbers once', () => {
    const { graph } = graphOf(() => {
      const y = t.dropout(x, { p: 0.5, generator });
      return [t.mul(y, middle(t.mul(y, 2)))];
    });
    expect(rematerialize(graph, 0)).toMatchObject({ graph });
  });

  it('comes as near as it can', () => {
    // A forward pass whose activations a backward pass reads in reverse.
    const traced = graphOf(() => {
      const layers = [x];
      for (let i = 0; i < 12; i++) layers.push(t.exp(t.mul(layers.at(-1)!, -0.1)));
      return [layers.reduceRight((sum, layer) => t.mul(t.sub(sum, layer), layer))];
    });
    const { graph, bytes } = rematerialize(traced.graph, 0);
    expectSameBits(traced, graph);
    expect(bytes).toBe(needed(graph));
    expect(bytes).toBeLessThan(needed(traced.graph) / 2);
  });
});
