import { type DType, byteSize } from '../../base/dtype.ts';
import type { HostMemory } from '@roofline/cuda/host';
import { isAligned } from '../../base/alignment.ts';
import { multiplierOf, shiftOf } from './divisor.ts';
import type { StridedLayout } from './strided-layout.ts';

const narrowLimit = 2 ** 31;

/** Whether 31 bits hold every index and every operand's offsets, so that a kernel may use 32-bit arithmetic. */
export function isNarrow(layout: StridedLayout): boolean {
  if (layout.size >= narrowLimit) return false;
  for (let o = 0; o < layout.operands; o++) if (layout.extentOf(o) >= narrowLimit) return false;
  return true;
}

/**
 * The longest vector of at most `vectorBytes` that every operand allows along the innermost dimension: operands are dense and
 * aligned there, or are inputs (the first `inputCount` operands) that repeat.
 */
export function stridedVectorLength(
  layout: StridedLayout,
  operands: readonly { readonly dtype: DType }[],
  addresses: Float64Array,
  inputCount: number,
  vectorBytes: number,
): number {
  let widest = 1;
  for (let o = 0; o < operands.length; o++) widest = Math.max(widest, byteSize(operands[o]!.dtype));
  let length = vectorBytes / widest;
  while (length > 1 && !allowsVectors(layout, operands, addresses, inputCount, length)) length /= 2;
  return length;
}

function allowsVectors(
  layout: StridedLayout,
  operands: readonly { readonly dtype: DType }[],
  addresses: Float64Array,
  inputCount: number,
  length: number,
): boolean {
  if (layout.lengths[0]! % length !== 0) return false;
  for (let o = 0; o < operands.length; o++) {
    const inner = layout.strideAt(o, 0);
    if (inner === 0 && o < inputCount) continue;
    if (inner !== 1 || !isAligned(addresses[o]!, length * byteSize(operands[o]!.dtype))) return false;
    for (let d = 1; d < layout.rank; d++) if (layout.strideAt(o, d) % length !== 0) return false;
  }
  return true;
}

/** The bytes of the Layout parameter of a generated strided kernel. */
export function layoutBytes(rank: number, operands: number, wide: boolean): number {
  return wide ? 8 * (1 + rank + operands * rank) : 4 * (1 + 3 * rank + operands * rank);
}

/** Writes the Layout parameter, with the innermost dimension counted in vectors; see `stridedPointwiseSource`. */
export function writeLayout(
  memory: HostMemory,
  offset: number,
  layout: StridedLayout,
  vectorLength: number,
  wide: boolean,
): void {
  if (wide) writeWide(memory, offset, layout, vectorLength);
  else writeNarrow(memory.words, offset / 4, layout, vectorLength);
}

function writeNarrow(words: Uint32Array, start: number, layout: StridedLayout, vectorLength: number): void {
  const { rank, operands, lengths } = layout;
  words[start] = layout.size / vectorLength;
  for (let d = 0; d < rank; d++) {
    const length = d === 0 ? lengths[0]! / vectorLength : lengths[d]!;
    words[start + 1 + d] = length;
    words[start + 1 + rank + d] = multiplierOf(length);
    words[start + 1 + 2 * rank + d] = shiftOf(length);
  }
  let at = start + 1 + 3 * rank;
  for (let o = 0; o < operands; o++) {
    words[at++] = layout.strideAt(o, 0) * vectorLength;
    for (let d = 1; d < rank; d++) words[at++] = layout.strideAt(o, d);
  }
}

function writeWide(memory: HostMemory, offset: number, layout: StridedLayout, vectorLength: number): void {
  const { rank, operands, lengths } = layout;
  memory.writeInt64(offset, layout.size / vectorLength);
  let at = offset + 8;
  for (let d = 0; d < rank; d++, at += 8)
    memory.writeInt64(at, d === 0 ? lengths[0]! / vectorLength : lengths[d]!);
  for (let o = 0; o < operands; o++) {
    for (let d = 0; d < rank; d++, at += 8) {
      memory.writeInt64(at, layout.strideAt(o, d) * (d === 0 ? vectorLength : 1));
    }
  }
}
