import { isIntermediate } from '../graph/liveness.ts';
import type { Call, Operand, Graph, GraphStorage } from '../graph/graph.ts';
import { byteSize } from '../../base/dtype.ts';
import { isContiguous } from '../../base/shape.ts';
import { isAccumulation } from './accumulate-products.ts';
import type { Rewrite } from './rewrite.ts';
import { rewritesOf } from './rewrites-of.ts';

/** The bytes of kernels' vectors: parts of a joint storage begin at multiples of it. */
const vectorBytes = 16;

type Uses = ReadonlyMap<number, readonly Call[]>;

/** Puts storages of matrices one after the other into a joint one; returns its number. */
export function stackRows(rewrite: Rewrite, matrices: readonly Operand[]): number {
  const elements = matrices.reduce((sum, { size }) => sum + size, 0);
  return rewrite.add(storageOf(elements, matrices[0]!), (joint) => {
    let next = 0;
    return new Map(
      matrices.map(({ storage, size }) => {
        const start = next;
        next += size;
        const move = (operand: Operand) => ({ ...operand, storage: joint, offset: start + operand.offset });
        return [storage, move] as const;
      }),
    );
  });
}

/** Puts storages of matrices with equally many rows side by side into a joint one; returns its number. */
export function joinColumns(rewrite: Rewrite, matrices: readonly Operand[]): number {
  const pitch = matrices.reduce((sum, { shape }) => sum + shape.at(-1)!, 0);
  const elements = matrices.reduce((sum, { size }) => sum + size, 0);
  return rewrite.add(storageOf(elements, matrices[0]!), (joint) => {
    let next = 0;
    return new Map(
      matrices.map(({ storage, shape }) => {
        const [columns, start] = [shape.at(-1)!, next];
        next += columns;
        const move = (operand: Operand) => {
          const { offset, strides } = layoutInRows(operand, columns, pitch)!;
          const dense = isContiguous(operand.shape, strides);
          return { ...operand, storage: joint, strides, offset: start + offset, isContiguous: dense };
        };
        return [storage, move] as const;
      }),
    );
  });
}

function storageOf(elements: number, { dtype }: Operand): GraphStorage {
  return { byteLength: elements * byteSize(dtype), dtype, source: { kind: 'made' } };
}

/** Whether an operand fills an intermediate storage, in the order of its elements. */
export function fillsIntermediate(graph: Graph, operand: Operand): boolean {
  return (
    isIntermediate(graph, operand.storage) &&
    operand.isContiguous &&
    operand.byteLength === graph.storages[operand.storage]!.byteLength
  );
}

/** Whether a matrix is a whole number of vectors, so that what follows it is aligned for them, too. */
export function fillsVectors({ size, dtype }: Pick<Operand, 'size' | 'dtype'>): boolean {
  return size > 0 && (size * byteSize(dtype)) % vectorBytes === 0;
}

/**
 * Whether a matrix [..., columns] that fills its storage may become columns of a wider one: all operands in its storage stay
 * within its rows, and all readers can read it there without a copy.
 */
export function mayLieInRows(graph: Graph, uses: Uses, matrix: Operand): boolean {
  const columns = matrix.shape.at(-1)!;
  if (!fillsIntermediate(graph, matrix) || !fillsVectors({ size: columns, dtype: matrix.dtype }))
    return false;
  const [writer, ...readers] = uses.get(matrix.storage)!;
  const isOf = ({ storage }: Operand) => storage === matrix.storage;
  const fits = (operand: Operand) => layoutInRows(operand, columns, 2 * columns) !== null;
  if (writer!.inputs.some(isOf) || !writer!.outputs.filter(isOf).every(fits)) return false;
  return readers.every(
    (call) =>
      !call.outputs.some(isOf) &&
      call.inputs.every(
        (input, i) => !isOf(input) || (fits(input) && (readsStrided(call, i) || !input.isContiguous)),
      ),
  );
}

/** Whether the call that makes such a matrix can write it there as a whole. */
export function isMadeInRows(uses: Uses, matrix: Operand): boolean {
  const [writer] = uses.get(matrix.storage) as [Call];
  const { op, outputs } = writer;
  const output = outputs.find(({ storage }) => storage === matrix.storage)!;
  if (op.mutates || output.size !== matrix.size) return false;
  if (op.cuda.kind === 'pointwise') return true;
  const rewrites = rewritesOf(writer);
  if (!rewrites.writesStrided) return false;
  // As the second of two parts: if its offset and pitch can be written, so can all multiples of them.
  const columns = matrix.shape.at(-1)!;
  const { offset, strides } = layoutInRows(output, columns, 2 * columns)!;
  return rewrites.writesStrided({ shape: output.shape, strides, offset: offset + columns });
}

/** Whether a call reads this input in any layout; what a product is added to must be dense. */
function readsStrided(call: Call, input: number): boolean {
  const { cuda } = call.op;
  if (isAccumulation(call) && input === 2) return false;
  return cuda.kind === 'pointwise' || (cuda.kind === 'custom' && cuda.strided === true);
}

/**
 * The layout of a view of a dense matrix with so many columns once its rows are `pitch` elements apart; null for a view that
 * runs across the end of a row.
 */
function layoutInRows(
  { shape, strides, offset }: Operand,
  columns: number,
  pitch: number,
): { readonly strides: number[]; readonly offset: number } | null {
  const column = offset % columns;
  let last = column;
  const placed = strides.map((stride, d) => {
    if (stride % columns === 0) return (stride / columns) * pitch;
    last += (shape[d]! - 1) * stride;
    return stride;
  });
  return last < columns ? { strides: placed, offset: ((offset - column) / columns) * pitch + column } : null;
}
