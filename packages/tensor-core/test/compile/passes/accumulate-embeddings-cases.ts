import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Device, Tensor } from '../../../src/index.ts';
import { accumulateEmbeddings } from '../../../src/compile/passes/accumulate-embeddings.ts';
import { expectSameBits, opNames, graphOf } from '../traced-graph.ts';

const both = 'fused_embeddingBackward_add_';

/** Gradients of tables added where rows were looked up, compared to those of whole tables, on `open`'s device. */
export function describeAccumulatedEmbeddings(open: () => Device): void {
  const random = (shape: readonly number[], dtype: DType, seed: number) =>
    t.noGrad(() => t.cast(t.randn(shape, { device: open(), generator: new t.Generator(seed) }), dtype));
  const ids = (values: number[], dtype: 'int32' | 'int64' = 'int64') =>
    t.tensor(values, { device: open(), dtype });
  const left = (fn: () => readonly Tensor[]) => {
    const traced = graphOf(fn);
    const changed = accumulateEmbeddings(traced.graph);
    // In rows that were not looked up, -0 stays -0.
    expectSameBits(traced, changed, { zerosMayDiffer: true });
    return opNames(changed);
  };
  /** The gradient of a table that also serves as a head, besides what `more` gives. */
  const tied =
    (table: Tensor, looked: Tensor, more: () => readonly Tensor[] = () => []) =>
    () => {
      table.grad = null;
      const rows = t.embedding(table, looked);
      const logits = t.matmul(t.mul(rows, 2), t.transpose(table));
      t.sum(t.tanh(logits)).backward();
      return [table.grad!.detach(), ...more()];
    };

  it.each(['float32', 'float64', 'float16', 'bfloat16'] as const)(
    'in %s, of rows that were looked up often, once and never',
    (dtype) => {
      for (const [vocabulary, dimension, looked] of [
        [9, 8, [3, 3, 0, 8, 3, 3, 3, 3, 3]],
        [300, 5, [299, 7, 7, 0]],
        [3, 520, [1]],
        // Ids outside make a head's gradients NaN, of which low precision has several.
        ...(dtype.endsWith('16') ? [] : [[4, 4, [0, 4, -1, 2]] as const]),
      ] as const)
        t.scope(() => {
          const table = random([vocabulary, dimension], dtype, dimension).requiresGrad_();
          const names = left(tied(table, ids([...looked], dimension % 2 ? 'int32' : 'int64')));
          expect(names).toContain(both);
          expect(names).not.toContain('embeddingBackward');
          expect(names).not.toContain('add_');
        });
    },
  );

  it('onto a gradient of an earlier batch', () => {
    const table = random([6, 4], 'float32', 1).requiresGrad_();
    const looked = [ids([1, 5]), ids([1, 1])];
    const names = left(() => {
      table.grad = null;
      for (const each of looked) t.sum(t.mul(t.embedding(table, each), 3)).backward();
      return [table.grad!.detach()];
    });
    expect(names.filter((name) => name === both)).toHaveLength(1);
    expect(names.filter((name) => name === 'embeddingBackward')).toHaveLength(1);
  });

  it('of no rows at all', () => {
    const table = random([6, 4], 'float32', 2).requiresGrad_();
    const none = t.zeros([0], { device: open(), dtype: 'int64' });
    const names = left(() => {
      table.grad = null;
      t.add(t.sum(t.embedding(table, none)), t.sum(t.mul(table, 2))).backward();
      return [table.grad!.detach()];
    });
    expect(names.some((name) => name === both || name === 'embeddingBackward')).toBe(true);
  });

  it('not where another call reads it, or a part is added', () => {
    const table = random([6, 4], 'float32', 3).requiresGrad_();
    const looked = ids([2, 2, 4]);
    const separate = (use: (gradient: Tensor) => readonly Tensor[]) => () => {
      table.grad = null;
      t.sum(t.mul(t.embedding(table, looked), 3)).backward();
      return use(table.grad!);
    };
    const isApart = (names: readonly string[]) => {
      expect(names).toContain('embeddingBackward');
      expect(names).not.toContain(both);
    };
    const start = random([6, 4], 'float32', 4);
    const total = () => t.copy(start);
    const addedTo = (sum: Tensor, gradient: Tensor) => {
      t.noGrad(() => t.addInPlace(sum, gradient));
      return sum;
    };
    isApart(left(separate((gradient) => [addedTo(total(), gradient), t.neg(gradient)])));
    isApart(left(separate((gradient) => [addedTo(total(), gradient), gradient.detach()])));
    const part = (x: Tensor) => t.slice(x, 0, 1, 3);
    isApart(
      left(
        separate((gradient) => {
          const sum = total();
          addedTo(part(sum), part(gradient));
          return [sum];
        }),
      ),
    );
    const turned = t.transpose(random([4, 6], 'float32', 5));
    isApart(
      left(separate((gradient) => [t.add(addedTo(t.transpose(t.copy(t.transpose(turned))), gradient), 0)])),
    );
    isApart(left(separate((gradient) => [addedTo(t.cast(start, 'float64'), gradient)])));
  });
}
