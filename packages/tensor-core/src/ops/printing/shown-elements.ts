import { type TypedArray, byteSize, typedArray } from '../../base/dtype.ts';
import { fromBits16 } from '../../base/float16.ts';
import { bytesOfArray } from '../../tensor/host-values.ts';
import { contiguousStrides } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** Above so many elements only the first and last of each dimension are shown, as in NumPy. */
const summarizedAbove = 1000;
const edgeItems = 3;

/** Gaps of up to so many elements are read as well, which is cheaper than a second read. */
const longestGap = 256;

/** The part of a tensor that is printed. */
export interface ShownElements {
  /** For each dimension which indices are shown, ascending. */
  readonly indices: readonly (readonly number[])[];
  /** Their elements, in row-major order; integers of 64 bits as bigints. */
  readonly values: readonly (number | bigint)[];
}

/** Reads the part of `x` that is printed, and little else. Waits for the device. */
export function readShown(x: Tensor): ShownElements {
  const summarize = x.size > summarizedAbove;
  const indices = x.shape.map((length) => shownIndices(length, summarize));
  return { indices, values: readElements(x, offsetsOf(x, indices)) };
}

function shownIndices(length: number, summarize: boolean): number[] {
  if (!summarize || length <= 2 * edgeItems) return Array.from({ length }, (_, i) => i);
  return Array.from({ length: 2 * edgeItems }, (_, i) => (i < edgeItems ? i : length - 2 * edgeItems + i));
}

/** Offsets of the shown elements in the storage, in row-major order. */
function offsetsOf(x: Tensor, indices: ShownElements['indices']): number[] {
  return indices.reduce<number[]>(
    (offsets, shown, dimension) =>
      offsets.flatMap((offset) => shown.map((index) => offset + index * x.strides[dimension]!)),
    [x.offset],
  );
}

function readElements(x: Tensor, offsets: readonly number[]): (number | bigint)[] {
  const ascending = [...new Set(offsets)].sort((a, b) => a - b);
  const values = new Map<number, number | bigint>();
  for (let i = 0; i < ascending.length;) {
    const first = i++;
    while (i < ascending.length && ascending[i]! - ascending[i - 1]! <= longestGap) i++;
    const start = ascending[first]!;
    const run = readRun(x, start, ascending[i - 1]! - start + 1);
    for (const offset of ascending.slice(first, i)) values.set(offset, valueAt(x, run, offset - start));
  }
  return offsets.map((offset) => values.get(offset)!);
}

function readRun(x: Tensor, start: number, length: number): TypedArray {
  const run = typedArray(x.dtype, length);
  x.device.read(x.storage.buffer, start * byteSize(x.dtype), bytesOfArray(run));
  return run;
}

function valueAt({ dtype }: Tensor, run: TypedArray, at: number): number | bigint {
  return run instanceof Uint16Array ? fromBits16(dtype, run[at]!) : run[at]!;
}

/** Elements of the shown part from one index of each dimension to the next. */
export function shownStrides({ indices }: ShownElements): number[] {
  return contiguousStrides(indices.map(({ length }) => length));
}
