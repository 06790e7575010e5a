import type { Profile } from '@roofline/tensor-core';
import { z } from 'zod';

const numbers = z.array(z.number());

/**
 * The profile of one step as records keep it: lists instead of objects, so that thousands of kernels stay small.
 * Names are indices into `strings`; -1 means none. Times are microseconds since the step began, sizes bytes.
 */
export const packedProfile = z.object({
  strings: z.array(z.string()),
  wallUs: z.number(),
  droppedRecords: z.number(),
  ranges: z.object({ name: numbers, parent: numbers }),
  ops: z.object({
    name: numbers,
    range: numbers,
    dtype: numbers,
    isMatrixProduct: numbers,
    flops: numbers,
    bytesMoved: numbers,
    allocatedBytes: numbers,
  }),
  kernels: z.object({
    name: numbers,
    kind: numbers,
    stream: numbers,
    startUs: numbers,
    durationUs: numbers,
    op: numbers,
  }),
});
export type PackedProfile = z.infer<typeof packedProfile>;

export function packProfile({ kernels, ops, ranges, wallUs, droppedRecords }: Profile): PackedProfile {
  const strings = new Map<string, number>();
  const text = (value: string) => {
    const known = strings.get(value) ?? strings.size;
    strings.set(value, known);
    return known;
  };
  // CUPTI's clock counts whole nanoseconds.
  const toNs = (us: number) => Math.round(us * 1000);
  const toNanosecond = (us: number) => toNs(us) / 1000;
  // By both ends: what lay apart still does.
  const roundedDuration = (startUs: number, durationUs: number) =>
    (toNs(startUs + durationUs) - toNs(startUs)) / 1000;
  return {
    wallUs: toNanosecond(wallUs),
    droppedRecords,
    ranges: {
      name: ranges.map(({ name }) => text(name)),
      parent: ranges.map(({ parent }) => parent ?? -1),
    },
    ops: {
      name: ops.map(({ name }) => text(name)),
      range: ops.map(({ range }) => range ?? -1),
      dtype: ops.map(({ dtype }) => text(dtype)),
      isMatrixProduct: ops.map(({ isMatrixProduct }) => Number(isMatrixProduct)),
      flops: ops.map(({ cost }) => cost.flops),
      bytesMoved: ops.map(({ cost }) => cost.bytesMoved),
      allocatedBytes: ops.map(({ allocatedBytes }) => allocatedBytes),
    },
    kernels: {
      name: kernels.map(({ name }) => text(name)),
      kind: kernels.map(({ kind }) => text(kind)),
      stream: kernels.map(({ stream }) => text(stream)),
      startUs: kernels.map(({ startUs }) => toNanosecond(startUs)),
      durationUs: kernels.map(({ startUs, durationUs }) => roundedDuration(startUs, durationUs)),
      op: kernels.map(({ op }) => op ?? -1),
    },
    strings: [...strings.keys()],
  };
}
