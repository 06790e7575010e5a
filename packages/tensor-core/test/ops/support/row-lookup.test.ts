import { describe, expect, it } from 'vitest';
import { type KernelSpec, kernelVariants } from '@roofline/cuda';
import type { MemoryView } from '../../../src/base/memory-view.ts';
import { launchRows, rowPlan, rowsAlone, vectorLength } from '../../../src/ops/support/row-kernel.ts';
import { kernelSource } from '../../../src/op/kernel-arguments/kernel-source.ts';
import type { DType } from '../../../src/base/dtype.ts';

describe('plans of rows', () => {
  const budget = { preferredElements: 16, mostElements: 32 };

  // One part at a time: a key without it would find the first plan.
  it('gives equal calls one object, and others another', () => {
    const first = rowPlan('float32', 1024, 4, budget);
    expect(rowPlan('float32', 1024, 4, budget)).toBe(first);
    const others = [
      rowPlan('int32', 1024, 4, budget),
      rowPlan('float32', 1028, 4, budget),
      rowPlan('float32', 1024, 2, budget),
      rowPlan('float32', 1024, 4, { preferredElements: 16, mostElements: 8 }),
      rowPlan('float32', 1024, 4, { preferredElements: 8, mostElements: 32 }),
      rowPlan('float32', 1024, 4, budget, false),
    ];
    expect(new Set([first, ...others]).size).toBe(7);
  });

  it('distinguishes every dtype, length and vector', () => {
    const plans = new Map<object, string>();
    for (const dtype of [
      'float32',
      'float16',
      'bfloat16',
      'float64',
      'int32',
      'int64',
      'bool',
    ] satisfies DType[]) {
      for (const columns of [16, 32, 48, 272, 1_000_000, 2 ** 31]) {
        for (const length of [1, 2, 4, 8, 16]) {
          const plan = rowPlan(dtype, columns, length);
          expect(plan.defines.VECTOR_LENGTH).toBe(length);
          expect(plans.get(plan)).toBeUndefined();
          plans.set(plan, `${dtype} ${columns} ${length}`);
        }
      }
    }
  });
});

describe('vectorLength', () => {
  const view = (address: number, dtype: DType) => ({ address, dtype }) as MemoryView;

  it('divides the row, up to 16 bytes, and every address is aligned to it', () => {
    expect(vectorLength(1024, [view(4096, 'float32')])).toBe(4);
    expect(vectorLength(1024, [view(4096, 'bfloat16')])).toBe(8);
    expect(vectorLength(1022, [view(4096, 'float32')])).toBe(2);
    expect(vectorLength(1023, [view(4096, 'float32')])).toBe(1);
    expect(vectorLength(1024, [view(4096, 'float32'), view(4104, 'float32')])).toBe(2);
    expect(vectorLength(1024, [view(4100, 'float32'), view(4096, 'float32')])).toBe(1);
    expect(vectorLength(1024, [view(4096, 'bfloat16'), view(4112, 'float32')])).toBe(8);
    expect(vectorLength(1024, [view(4096, 'bfloat16'), view(4104, 'float32')])).toBe(2);
  });
});

describe('launchRows', () => {
  it('launches a block for each group of rows, with addresses, rows and columns', () => {
    const launches: unknown[] = [];
    const specs: KernelSpec[] = [];
    const context = {
      kernel: (spec: KernelSpec) => {
        specs.push(spec);
        return { name: 'f', launch: (...all: unknown[]) => launches.push(all) };
      },
    } as unknown as Parameters<typeof launchRows>[0];
    const kernel = kernelVariants(kernelSource('k.cu'), 'f', {
      ...{ x: 'pointer', y: 'pointer', rows: 'int64', columns: 'int32' },
    });
    const view = (address: number, rows: number) =>
      ({ address, dtype: 'float32', shape: [rows, 32], size: 32 * rows }) as unknown as MemoryView;
    launchRows(context, kernel, { x: view(4096, 33), y: view(8192, 33) });
    const { BLOCK_THREADS, ROW_THREADS } = rowPlan('float32', 32, 4, rowsAlone).defines;
    const blocks = Math.ceil((33 * ROW_THREADS) / BLOCK_THREADS);
    expect(launches).toEqual([[[blocks, 1, 1], BLOCK_THREADS, 0, [4096, 8192, 33, 32]]]);
    expect(specs[0]!.defines).toBe(rowPlan('float32', 32, 4, rowsAlone).defines);
    launchRows(context, kernel, { x: view(4096, 0) });
    expect(launches).toHaveLength(1);
  });
});
