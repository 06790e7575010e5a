import type { StridedMemory } from '@roofline/tensor-core';
import type { TensorMapDescription } from '@roofline/cuda';

const elementBytes = 2;
const alignmentBytes = 16;

// By chunk: as wide as its bytes. Names put together at run time would have V8 give up its code of the encoder again and again.
const swizzles = { 16: '32B', 32: '64B', 64: '128B' } as const;

/** What one copy between a tensor's heads and a tile in shared memory takes: see kernels/hopper/hopper_tiles.cuh. */
export interface HeadBox {
  readonly rows: number;
  /** Columns that lie side by side in shared memory: 16, 32 or 64. */
  readonly chunk: 16 | 32 | 64;
  /** Whether a copy takes all of the parts, where these are narrow, or only one. */
  readonly wholeRows: boolean;
}

// Parts so narrow are a dimension of their own, of which one copy takes several.
const narrowChunk = 16;

/**
 * The tensor map of a [batch, heads, sequence, d] tensor of bfloat16 or float16 that `isReadableByTma`. Columns after
 * the last, which a tile for a larger head dimension has, are outside of the tensor: zeros where TMA reads, and left
 * alone where it writes.
 */
export function headTensorMap(
  { address, dtype, shape, strides }: StridedMemory,
  { rows, chunk, wholeRows }: HeadBox,
): TensorMapDescription {
  const [batch, heads, length, columns] = shape as [number, number, number, number];
  // Of a dimension of one index the stride is never used, but must be valid.
  const bytes = (i: number) => elementBytes * (shape[i] === 1 ? columns : strides[i]!);
  const parts = chunk === narrowChunk && columns % chunk === 0 ? columns / chunk : 1;
  return {
    dtype,
    address,
    dimensions: [columns / parts, length, parts, heads, batch],
    strideBytes: [bytes(2), elementBytes * chunk, bytes(1), bytes(0)],
    box: [chunk, rows, wholeRows ? parts : 1, 1, 1],
    swizzle: swizzles[chunk],
    l2Promotion: '128B',
  };
}

/** Whether TMA can copy rows of a [batch, heads, sequence, d] tensor: they lie densely, apart, and aligned. */
export function isReadableByTma({ address, shape, strides }: StridedMemory): boolean {
  const aligned = alignmentBytes / elementBytes;
  if (address % alignmentBytes !== 0 || strides[3] !== 1) return false;
  for (let i = 0; i < 3; i++) {
    if (shape[i] !== 1 && (strides[i]! <= 0 || strides[i]! % aligned !== 0)) return false;
  }
  return true;
}
