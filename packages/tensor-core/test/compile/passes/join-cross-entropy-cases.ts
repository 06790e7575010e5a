import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Device, Tensor } from '../../../src/index.ts';
import { joinCrossEntropy } from '../../../src/compile/passes/join-cross-entropy.ts';
import { expectSameBits, opNames, graphOf } from '../traced-graph.ts';

const bothNames = /^fused_(cast_)?crossEntropy_(fill__)?crossEntropyBackward(_cast)?$/;

/** Losses and gradients by one kernel, compared bit by bit to those by two, on `open`'s device. */
export function describeJointCrossEntropy(open: () => Device): void {
  const leafOf = (shape: readonly [number, number], dtype: DType = 'float32', change = (x: Tensor) => x) => {
    const values = t.mul(t.randn(shape, { device: open(), generator: new t.Generator(shape[1]) }), 3);
    return t.noGrad(() => t.copy(t.cast(change(values), dtype))).requiresGrad_();
  };
  const targetsOf = (rows: number, classes: number, dtype: DType = 'int64') => {
    return t.randint(0, classes, [rows], { device: open(), generator: new t.Generator(rows), dtype });
  };
  const ids = (values: number[]) => t.tensor(values, { device: open(), dtype: 'int64' });

  /** The names of the ops that remain of `loss` of the leaf's values, and of the gradient of what `above` makes of it. */
  const joined = (leaf: Tensor, loss: (logits: Tensor) => Tensor, above = (x: Tensor) => x) => {
    leaf.grad = null;
    const traced = graphOf(() => {
      const value = loss(leaf);
      above(value).backward();
      return [value.detach(), leaf.grad!.detach()];
    });
    const changed = joinCrossEntropy(traced.graph);
    expectSameBits(traced, changed);
    leaf.grad = null;
    return opNames(changed);
  };

  it.each(['float32', 'float16', 'bfloat16', 'float64'] as const)(
    'of %s logits, of every length of rows',
    (dtype) => {
      for (const [rows, columns] of [
        [1, 2],
        [9, 17],
        [70, 64],
        [3, 10000],
        // Too long for registers: in shared memory, and too long for that.
        [2, 40001],
        [2, 120004],
      ] as const) {
        t.scope(() => {
          const targets = targetsOf(rows, columns, rows % 2 ? 'int32' : 'int64');
          const names = joined(leafOf([rows, columns], dtype), (logits) => t.crossEntropy(logits, targets));
          expect(names).toHaveLength(1);
          expect(names[0]).toMatch(bothNames);
        });
      }
    },
  );

  it('of more rows than a block adds at once', () => {
    const targets = targetsOf(2500, 3);
    expect(joined(leafOf([2500, 3]), (logits) => t.crossEntropy(logits, targets))).toHaveLength(1);
  });

  it('of rows that are ignored, even all of them, and of targets that are not a class', () => {
    for (const values of [
      [-100, 2, -100, 0],
      [-100, -100, -100, -100],
      [1, 5, 2, 0],
      [1, -1, 2, -100],
    ]) {
      const targets = ids(values);
      expect(joined(leafOf([4, 5]), (logits) => t.crossEntropy(logits, targets))).toHaveLength(1);
    }
    const targets = ids([3, 0, 3, 1]);
    const other = (logits: Tensor) => t.crossEntropy(logits, targets, { ignoreIndex: 3 });
    expect(joined(leafOf([4, 5]), other)).toHaveLength(1);
  });

  it('of logits that are NaN or infinite', () => {
    const special = (x: Tensor) => {
      for (const [row, value] of [NaN, -Infinity, Infinity, 1e30].entries())
        t.fillInPlace(t.select(t.select(x, 0, row), 0, 2 * row), value);
      t.fillInPlace(t.select(x, 0, 4), -Infinity);
      return x;
    };
    const leaf = leafOf([6, 7], 'float32', special);
    const targets = ids([0, 1, 4, 6, 2, -100]);
    expect(joined(leaf, (logits) => t.crossEntropy(logits, targets))).toHaveLength(1);
  });

  it('of a view, and of what is not a leaf', () => {
    const targets = targetsOf(6, 5);
    const names = joined(leafOf([5, 6]), (x) => t.crossEntropy(t.mul(t.transpose(x), 2), targets));
    expect(names.filter((name) => bothNames.test(name))).toHaveLength(1);
    const wide = joined(leafOf([6, 9]), (x) => t.crossEntropy(t.slice(x, 1, 2, 7), targets));
    expect(wide.filter((name) => bothNames.test(name))).toHaveLength(1);
  });

  it.each(['bfloat16', 'float16'] as const)(
    'of %s logits that are cast for it, and their gradient back',
    (dtype) => {
      for (const [rows, columns] of [
        [9, 17],
        [70, 64],
        [3, 10000],
        [2, 40004],
      ] as const) {
        t.scope(() => {
          const targets = targetsOf(rows, columns);
          const wide = (x: Tensor) =>
            t.crossEntropy(t.reshape(t.cast(x, 'float32'), [rows, columns]), targets);
          const names = joined(leafOf([rows, columns], dtype), wide);
          expect(names).toEqual(['fused_cast_crossEntropy_fill__crossEntropyBackward_cast']);
        });
      }
    },
  );

  it('of logits that are cast but also read by others, or written', () => {
    const targets = targetsOf(8, 12);
    const isThere = (names: readonly string[], ops: readonly string[]) => {
      expect(names.filter((name) => name === 'cast')).toHaveLength(ops.length);
      expect(names.some((name) => name.includes('crossEntropy'))).toBe(true);
    };
    const both = (x: Tensor) => {
      const wide = t.cast(x, 'float32');
      return t.add(t.crossEntropy(wide, targets), t.mul(t.sum(wide), 0.5));
    };
    isThere(joined(leafOf([8, 12], 'bfloat16'), both), ['cast', 'cast']);
    const written = (x: Tensor) => {
      const own = t.mul(x, 2);
      const wide = t.cast(own, 'float32');
      t.noGrad(() => t.fillInPlace(own.detach(), 1));
      return t.crossEntropy(wide, targets);
    };
    const names = joined(leafOf([8, 12], 'bfloat16'), written);
    expect(names.some((name) => name.startsWith('fused_crossEntropy'))).toBe(true);
    expect(names).toContain('cast');
  });

  it('of logits that are cast, one of which also comes from above', () => {
    const targets = targetsOf(8, 12);
    const leaf = leafOf([8, 12], 'bfloat16');
    const traced = graphOf(() => {
      leaf.grad = null;
      const wide = t.cast(leaf, 'float32');
      const value = t.crossEntropy(wide, targets);
      value.backward(t.select(t.select(wide.detach(), 0, 0), 0, 1));
      return [value.detach(), leaf.grad!.detach()];
    });
    const changed = joinCrossEntropy(traced.graph);
    expectSameBits(traced, changed);
    expect(opNames(changed)).toEqual(['cast', 'fused_crossEntropy_crossEntropyBackward_cast']);
  });

  it('with what comes from above, made by another call', () => {
    const targets = targetsOf(8, 12);
    const loss = (logits: Tensor) => t.crossEntropy(logits, targets);
    const scale = t.tensor(1024, { device: open() });
    const scaled = joined(leafOf([8, 12], 'float16'), loss, (value) => t.mul(value, scale));
    expect(scaled).toEqual(['fill_', 'mul', 'fused_crossEntropy_crossEntropyBackward', 'mul']);
    const halved = joined(leafOf([8, 12]), loss, (value) => t.div(value, 3));
    expect(halved.filter((name) => bothNames.test(name))).toHaveLength(1);
  });

  it('twice in one graph', () => {
    const targets = targetsOf(8, 12);
    const leaf = leafOf([8, 12]);
    const loss = (x: Tensor) => t.add(t.crossEntropy(x, targets), t.crossEntropy(t.neg(x), targets));
    expect(joined(leaf, loss).filter((name) => bothNames.test(name))).toHaveLength(2);
  });

  it('not where the gradient needs the loss, or another call is in between', () => {
    const targets = targetsOf(8, 12);
    const loss = (logits: Tensor) => t.crossEntropy(logits, targets);
    const isApart = (names: readonly string[]) => {
      expect(names).toContain('crossEntropy');
      expect(names.some((name) => bothNames.test(name))).toBe(false);
    };
    isApart(joined(leafOf([8, 12]), loss, (value) => t.mul(value, value)));
    const total = t.zeros([], { device: open() });
    isApart(joined(leafOf([8, 12]), loss, (value) => t.mul(t.add(value, 0), t.exp(value))));
    // Seen by the host's own function only, but made of the loss.
    const leaf = leafOf([8, 12]);
    const traced = graphOf(() => {
      const value = loss(leaf);
      t.copyInPlace(total, value.detach());
      value.backward(t.copy(total));
      return [leaf.grad!.detach()];
    });
    isApart(opNames(joinCrossEntropy(traced.graph)));
    const constant = leafOf([8, 12]).detach();
    isApart(opNames(joinCrossEntropy(graphOf(() => [loss(constant)]).graph)));
  });

  it('never of logits that are written before their gradient is made', () => {
    const targets = targetsOf(8, 12);
    const leaf = leafOf([8, 12]);
    // The tape would refuse; a graph of smaller parts may not.
    const { graph } = graphOf(() => {
      const logits = t.neg(leaf);
      const value = t.crossEntropy(logits, targets);
      value.backward();
      return [value.detach(), leaf.grad!.detach()];
    });
    const at = graph.calls.findIndex(({ op }) => op.name === 'crossEntropyBackward');
    const [write] = graphOf(() => {
      const made = t.neg(leaf.detach());
      t.fillInPlace(made, 1);
      return [made];
    }).graph.calls.slice(-1);
    const logits = graph.calls[at]!.inputs[1]!;
    const calls = graph.calls.toSpliced(at, 0, { ...write!, inputs: [logits], outputs: [logits] });
    const changed = joinCrossEntropy({ ...graph, calls });
    expect(opNames(changed)).toEqual(calls.map(({ op }) => op.name));
  });
}
