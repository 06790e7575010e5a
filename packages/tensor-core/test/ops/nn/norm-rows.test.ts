import type { KernelSpec } from '@roofline/cuda';
import { expect, it } from 'vitest';
import type { MemoryView } from '../../../src/base/memory-view.ts';
import type { CudaContext } from '../../../src/op/cuda-lowering.ts';
import { deferredNormSums } from '../../../src/ops/nn/norm-kernel.ts';

/** How many elements a thread of the gradient's kernel holds of a row. */
function elementsHeld(columns: number): number {
  const specs: KernelSpec[] = [];
  const context = {
    properties: { multiprocessors: 132 },
    kernel: (spec: KernelSpec) => {
      specs.push(spec);
      return { launch: () => {} };
    },
  } as unknown as CudaContext;
  const view = (shape: readonly number[]) =>
    ({ address: 4096, dtype: 'float32', shape, size: shape.reduce((a, b) => a * b, 1) }) as MemoryView;
  const [rows, vector] = [view([2, columns]), view([columns])];
  const { launch } = deferredNormSums(() => ({
    dy: rows,
    x: rows,
    weight: vector,
    rstd: view([2]),
    dx: rows,
  }));
  launch(context, [], [rows, rows]);
  const { VECTOR_LENGTH, ROW_VECTORS } = specs[0]!.defines as Readonly<Record<string, number>>;
  return VECTOR_LENGTH! * ROW_VECTORS!;
}

it('the gradient of a norm has many threads for a short row, and few that wait for each other for a long one', () => {
  expect([512, 1024, 2048, 4092, 4096, 8192].map(elementsHeld)).toEqual([8, 8, 8, 8, 16, 16]);
});
