import type { Shape } from '../../../base/shape.ts';

/** An input as [outer, length, inner], of which the middle dimension is folded. */
export interface FoldedShape {
  readonly outer: number;
  readonly length: number;
  readonly inner: number;
}

/** How one kernel folds [outer, length, inner]. */
export interface ReductionPass {
  /** `rows` for inner = 1: lanes walk along the row. `columns`: lanes are side by side in `inner`. */
  readonly kind: 'rows' | 'columns';
  /** Threads that share a row: a warp or a whole block. */
  readonly width: 32 | 256;
  /** Elements of one load. */
  readonly vectorLength: number;
  /** The folded dimension is cut into `chunks` pieces of `chunk` elements; one result each. */
  readonly chunk: number;
  readonly chunks: number;
  readonly blocks: number;
}

const blockThreads = 256;
const warp = 32;
const longestRowOfWarp = 1024;
const smallestRowChunk = 4096;
const smallestColumnChunk = 64;
const blocksPerMultiprocessor = 4;

/** The three lengths for a dense `shape` folded along ascending `dims`; null if the dims are not neighbours. */
export function foldedShape(shape: Shape, dims: readonly number[]): FoldedShape | null {
  let [outer, length, inner] = [1, 1, 1];
  let next = 0;
  let [hasFolded, hasInner] = [false, false];
  for (let i = 0; i < shape.length; i++) {
    const isFolded = dims[next] === i;
    if (isFolded) next++;
    if (shape[i] === 1) continue;
    if (isFolded) {
      if (hasInner) return null;
      hasFolded = true;
      length *= shape[i]!;
    } else if (hasFolded) {
      hasInner = true;
      inner *= shape[i]!;
    } else {
      outer *= shape[i]!;
    }
  }
  // Nothing to fold: columns of length one, which are read densely.
  return hasFolded ? { outer, length, inner } : { outer: 1, length: 1, inner: outer };
}

/**
 * How to fold an input on a GPU of so many multiprocessors. If there is more than one chunk, a second pass must fold their
 * results; with `multiprocessors` 0 there is one. `widestVector` is the longest vector that dtype and alignment allow.
 */
export function planReduction(
  folded: FoldedShape,
  widestVector: number,
  multiprocessors: number,
): ReductionPass {
  const wantedBlocks = blocksPerMultiprocessor * multiprocessors;
  return folded.inner === 1
    ? planRows(folded, widestVector, wantedBlocks)
    : planColumns(folded, widestVector, wantedBlocks);
}

function planRows({ outer, length }: FoldedShape, widestVector: number, wantedBlocks: number): ReductionPass {
  const vectorLength = dividing(length, widestVector);
  const width = length <= longestRowOfWarp ? warp : blockThreads;
  const wantedChunks = Math.min(Math.ceil(wantedBlocks / outer), Math.floor(length / smallestRowChunk));
  const { chunk, chunks } = cut(length, wantedChunks, vectorLength);
  return {
    kind: 'rows',
    width,
    vectorLength,
    chunk,
    chunks,
    blocks: Math.ceil((outer * chunks * width) / blockThreads),
  };
}

function planColumns(
  { outer, length, inner }: FoldedShape,
  widestVector: number,
  wantedBlocks: number,
): ReductionPass {
  let vectorLength = dividing(inner, widestVector);
  while (vectorLength > 1 && warp * vectorLength > inner) vectorLength /= 2;
  const blocksOfRow = outer * Math.ceil(inner / (warp * vectorLength));
  const wantedChunks = Math.min(
    Math.ceil(wantedBlocks / blocksOfRow),
    Math.floor(length / smallestColumnChunk),
  );
  const { chunk, chunks } = cut(length, wantedChunks, 1);
  return { kind: 'columns', width: warp, vectorLength, chunk, chunks, blocks: blocksOfRow * chunks };
}

/** Equal pieces, all multiples of `multiple` except the last. */
function cut(length: number, wantedChunks: number, multiple: number): { chunk: number; chunks: number } {
  if (wantedChunks <= 1) return { chunk: length, chunks: 1 };
  const chunk = Math.ceil(length / wantedChunks / multiple) * multiple;
  return { chunk, chunks: Math.ceil(length / chunk) };
}

function dividing(length: number, widestVector: number): number {
  let vectorLength = widestVector;
  while (length % vectorLength !== 0) vectorLength /= 2;
  return vectorLength;
}
