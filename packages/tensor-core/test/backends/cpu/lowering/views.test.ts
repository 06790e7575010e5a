import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyOne } from '../../../../src/op/apply.ts';
import { planView } from '../../../../src/backends/cpu/lowering/view-graph.ts';
import type { DType } from '../../../../src/base/dtype.ts';
import { type Layout, contiguousStrides, sizeOf } from '../../../../src/base/shape.ts';
import { copyOp, pointwise, tensorOf, transposed, valuesOf, viewOf } from '../fixtures.ts';

/** A base tensor's shape, and a layout made from it the way users make views. */
const views = fc
  .record({
    shape: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 }),
    steps: fc.array(
      fc.record({
        kind: fc.constantFrom('transpose', 'slice', 'expand', 'select', 'unsqueeze'),
        a: fc.nat(20),
        b: fc.nat(20),
        step: fc.integer({ min: 1, max: 3 }),
      }),
      { maxLength: 5 },
    ),
  })
  .map(({ shape, steps }) => ({
    shape,
    layout: steps.reduce(changed, { shape, strides: contiguousStrides(shape), offset: 0 }),
  }));

function changed(
  layout: Layout,
  { kind, a, b, step }: { kind: string; a: number; b: number; step: number },
): Layout {
  const [shape, strides] = [[...layout.shape], [...layout.strides]];
  let { offset } = layout;
  const rank = shape.length;
  if (kind === 'unsqueeze' && rank < 5) {
    shape.splice(a % (rank + 1), 0, 1);
    strides.splice(a % (rank + 1), 0, 7);
  } else if (rank === 0) {
    return layout;
  } else if (kind === 'transpose') {
    const [i, j] = [a % rank, b % rank];
    [shape[i], shape[j]] = [shape[j]!, shape[i]!];
    [strides[i], strides[j]] = [strides[j]!, strides[i]!];
  } else if (kind === 'slice') {
    const i = a % rank;
    const start = b % shape[i]!;
    offset += start * strides[i]!;
    shape[i] = Math.ceil((shape[i]! - start) / step);
    strides[i] = strides[i]! * step;
  } else if (kind === 'expand' && shape[a % rank] === 1) {
    shape[a % rank] = 3;
    strides[a % rank] = 0;
  } else if (kind === 'select') {
    const i = a % rank;
    offset += (b % shape[i]!) * strides[i]!;
    shape.splice(i, 1);
    strides.splice(i, 1);
  }
  return { shape, strides, offset };
}

describe('views', () => {
  test('an op reads any view of a tensor', () => {
    fc.assert(
      fc.property(views, ({ shape, layout }) => {
        const view = viewOf(tensorOf(shape), layout);
        expect(valuesOf(applyOne(copyOp, [view], undefined))).toEqual(valuesOf(view));
      }),
      { numRuns: 300 },
    );
  });

  test('what transposes and unit-step slices make never needs a loop in JavaScript', () => {
    const unitSteps = views.filter(({ layout }) => layout.shape.length > 0);
    fc.assert(
      fc.property(unitSteps, ({ shape, layout }) => {
        const stepped = layout.strides.some(
          (stride) => stride !== 0 && !contiguousStrides(shape).includes(stride),
        );
        fc.pre(!stepped);
        expect(planView(layout, sizeOf(shape))).not.toBeNull();
      }),
      { numRuns: 300 },
    );
  });

  test.each<DType>(['float16', 'bfloat16', 'float64', 'int32', 'int64', 'bool'])('of %s', (dtype) => {
    const base = tensorOf(
      [2, 3, 4],
      Array.from({ length: 24 }, (_, i) => (dtype === 'bool' ? i % 2 : i)),
      dtype,
    );
    const view = viewOf(base, { shape: [4, 2, 2, 2], strides: [1, 0, 12, 8], offset: 0 });
    expect(valuesOf(applyOne(copyOp, [view], undefined))).toEqual(valuesOf(view));
  });

  test('that no reshape of the memory gives are gathered', () => {
    const diagonal = viewOf(tensorOf([4, 4]), { shape: [4], strides: [5], offset: 0 });
    const windows = viewOf(tensorOf([8]), { shape: [6, 3], strides: [1, 1], offset: 0 });
    expect(planView(diagonal, 16)).toBeNull();
    expect(planView(windows, 8)).toBeNull();
    expect(valuesOf(applyOne(copyOp, [diagonal], undefined))).toEqual([0, 5, 10, 15]);
    expect(valuesOf(applyOne(copyOp, [windows], undefined)).slice(0, 6)).toEqual([0, 1, 2, 1, 2, 3]);
  });

  test('a slice whose last row ends the storage, at an odd start', () => {
    const storage = tensorOf([43]);
    const view = viewOf(storage, { shape: [4, 5], strides: [10, 1], offset: 8 });
    expect(planView(view, 43)).not.toBeNull();
    expect(valuesOf(applyOne(copyOp, [view], undefined))).toEqual(valuesOf(view));
  });

  test('pointwise ops broadcast repeated operands by themselves', () => {
    const add = pointwise('Add');
    const repeated = viewOf(tensorOf([1, 3], [10, 20, 30]), { shape: [2, 3], strides: [0, 1], offset: 0 });
    expect(valuesOf(applyOne(add, [tensorOf([2, 3]), repeated], undefined))).toEqual([
      10, 21, 32, 13, 24, 35,
    ]);
    expect(valuesOf(applyOne(add, [repeated, tensorOf([2, 3])], undefined))).toEqual([
      10, 21, 32, 13, 24, 35,
    ]);
    expect(valuesOf(applyOne(add, [repeated, repeated], undefined))).toEqual([20, 40, 60, 20, 40, 60]);
    expect(valuesOf(applyOne(pointwise('Neg'), [repeated], undefined))).toEqual([
      -10, -20, -30, -10, -20, -30,
    ]);
  });

  test('contiguous views at different offsets share a session', () => {
    const base = tensorOf([4, 2]);
    const rows = [0, 2, 4].map((offset) => viewOf(base, { shape: [1, 2], strides: [2, 1], offset }));
    expect(rows.map((row) => valuesOf(applyOne(copyOp, [row], undefined)))).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
  });

  test('empty tensors and rank 0', () => {
    const empty = tensorOf([0, 3]);
    expect(valuesOf(applyOne(copyOp, [transposed(empty)], undefined))).toEqual([]);
    expect(valuesOf(applyOne(copyOp, [tensorOf([], [5])], undefined))).toEqual([5]);
  });
});
