import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { partsOf } from '../../../src/compile/cuda/arena.ts';
import { fullestCall } from '../../../src/compile/cuda/arena-plan.ts';
import { rematerialize } from '../../../src/compile/passes/rematerialize.ts';
import { withoutRepeatedCalls } from '../../../src/compile/passes/without-repeated-calls.ts';
import { expectSameBits, graphOf, opNames } from '../traced-graph.ts';

const [x, w] = [t.ones([64, 64]), t.full([64, 64], 0.01)];
const needed = (graph: Parameters<typeof partsOf>[0]) => fullestCall(partsOf(graph)).bytes;
const tensorBytes = 64 * 64 * 4;
/** Needs much memory in the middle. */
const middle = (y: Tensor) => t.scope(() => t.sum(t.concat([y, y, y, y])));

describe('rematerialize', () => {
  const generator = new t.Generator(1);

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

describe('what is made again', () => {
  const count = (graph: Parameters<typeof opNames>[0], name: string) =>
    opNames(graph).filter((each) => each === name).length;

  it('is not, where later choices have left room for it', () => {
    const wide = t.full([64, 256], 0.01);
    const traced = graphOf(() => {
      const [early, large] = [t.exp(x), t.matmul(x, wide)];
      const total = middle(t.mul(wide, t.add(t.sum(early), t.sum(large))));
      return [t.mul(early, total), t.mul(large, total)];
    });
    const most = needed(traced.graph) - 2 * tensorBytes;
    const { graph } = rematerialize(traced.graph, most);
    expect([count(graph, 'exp'), count(graph, 'matmul')]).toEqual([2, 2]);
    const left = withoutRepeatedCalls(graph, most);
    expectSameBits(traced, left);
    expect([count(left, 'exp'), count(left, 'matmul')]).toEqual([1, 2]);
    expect(needed(left)).toBeLessThanOrEqual(most);
  });

  /** Reads a tensor while so many of its size are made. */
  const read = (y: Tensor, copies: number, dim = 0) =>
    t.scope(() =>
      t.sum(
        t.concat(
          Array.from({ length: copies }, () => y),
          dim,
        ),
      ),
    );
  const row = t.ones([1024]);
  const repeated: [string, () => readonly Tensor[]][] = [
    ['at the fullest calls', () => [read(t.exp(x), 4), read(t.exp(x), 4, 1)]],
    ['before a fuller call', () => [read(t.exp(x), 2), read(w, 6), read(t.exp(x), 3)]],
    ['before a call as full', () => [read(t.exp(x), 2), read(w, 3), read(t.exp(x), 3)]],
    ['right before', () => [t.sum(t.exp(x)), t.mean(t.exp(x))]],
    [
      'where it is overwritten',
      () => {
        const y = t.view(x, [4, 1024]);
        const first = t.sum(t.scope(() => t.add(t.exp(y), t.tanh(row))));
        return [first, t.sum(w), t.sum(t.exp(y))];
      },
    ],
    [
      'before its next result is overwritten',
      () => [read(t.exp(x), 3), t.sum(w), t.sum(t.scope(() => t.neg(t.exp(x))))],
    ],
    ['at many places', () => [1, 5, 2, 4, 3].map((copies) => read(t.exp(x), copies))],
  ];
  it.each(repeated)('stays up to the next use where there is room, to the byte: last read %s', (_, fn) => {
    const traced = graphOf(fn);
    const [least, free] = [needed(traced.graph), withoutRepeatedCalls(traced.graph, 2 ** 40)];
    const enough = Math.max(least, needed(free));
    expect(count(free, 'exp')).toBe(1);
    expect(count(withoutRepeatedCalls(traced.graph, enough), 'exp')).toBe(1);
    for (let most = least; most < enough; most += 256) {
      const left = withoutRepeatedCalls(traced.graph, most);
      expectSameBits(traced, left);
      expect(needed(left)).toBeLessThanOrEqual(most);
      expect(count(left, 'exp')).toBeGreaterThan(1);
    }
  });

  it('goes with what it is made of', () => {
    const chain = () => t.tanh(t.neg(t.exp(x)));
    const traced = graphOf(() => [read(chain(), 3), t.sum(w), read(chain(), 3, 1)]);
    const left = withoutRepeatedCalls(traced.graph, needed(traced.graph));
    expectSameBits(traced, left);
    expect(['exp', 'neg', 'tanh'].map((name) => count(left, name))).toEqual([1, 1, 1]);
    expect(needed(left)).toBeLessThanOrEqual(needed(traced.graph));
  });

  it.each([
    ['is a cast of a parameter as well', 1],
    ['is a cast of a parameter, but not where that has been written', 2],
  ])('%s', (_, casts) => {
    const parameter = t.copy(x);
    const low = () => t.cast(parameter, 'bfloat16');
    const { graph } = graphOf(() => {
      const first = read(low(), 3);
      if (casts === 2) t.fillInPlace(t.select(parameter, 0, 3), 2);
      return [first, read(low(), 3, 1)];
    });
    const most = needed(graph);
    const left = withoutRepeatedCalls(graph, most);
    expect(count(left, 'cast')).toBe(casts);
    expect(needed(left)).toBeLessThanOrEqual(most);
  });
});
