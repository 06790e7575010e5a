import type { MemoryView } from '../../base/memory-view.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { isAligned } from '../../base/alignment.ts';
import { codeOf } from '../../op/kernel-arguments/dtype-code.ts';
import { type DType, byteSize } from '../../base/dtype.ts';
import type { KernelVariants } from '@roofline/cuda';

/** How a kernel that includes row.cuh distributes rows over threads; the macros are explained there. */
export interface RowPlan {
  readonly defines: {
    readonly ELEMENT: string;
    readonly VECTOR_LENGTH: number;
    readonly UNALIGNED_VECTORS: 0 | 1;
    readonly ROW_THREADS: number;
    readonly ROW_VECTORS: number;
    readonly BLOCK_THREADS: number;
  };
  readonly rowsPerBlock: number;
}

/** How many elements of a row one thread should hold in registers, and how many it may. */
export interface RegisterBudget {
  readonly preferredElements: number;
  readonly mostElements: number;
}

const maxBlockThreads = 1024;
const streamingThreads = 512;
const sharedBlockThreads = 128;
const maxVectorBytes = 16;
const defaultBudget: RegisterBudget = { preferredElements: 16, mostElements: 32 };
/** Of kernels that hold no more than their rows: fewer threads wait for each other, and several blocks have room on a multiprocessor. */
export const rowsAlone: RegisterBudget = { preferredElements: 32, mostElements: 32 };

/** The most elements, up to 16 bytes of them, that one load may take from each row of all `tensors`. */
export function vectorLength(columns: number, tensors: readonly MemoryView[]): number {
  let length = dividingLength(columns, tensors[0]!.dtype);
  while (length > 1 && !areAligned(tensors, length)) length /= 2;
  return length;
}

/** The most elements, up to 16 bytes of them, that divide a row. */
function dividingLength(columns: number, dtype: DType): number {
  let length = maxVectorBytes / byteSize(dtype);
  while (columns % length !== 0) length /= 2;
  return length;
}

function areAligned(tensors: readonly MemoryView[], length: number): boolean {
  for (const { address, dtype } of tensors) {
    if (!isAligned(address, Math.min(maxVectorBytes, length * byteSize(dtype)))) return false;
  }
  return true;
}

const dtypeCodes = 16;
const plans = new WeakMap<RegisterBudget, Map<number, RowPlan>>();

/**
 * The plan for rows of `tensors`, read as if they were of `dtype`. Which thread adds which elements follows from the rows' length
 * alone, so that results do not depend on where in memory the rows begin.
 */
export function planOfRows(
  columns: number,
  tensors: readonly MemoryView[],
  budget = defaultBudget,
  dtype: DType = tensors[0]!.dtype,
): RowPlan {
  const length = dividingLength(columns, dtype);
  return rowPlan(dtype, columns, length, budget, areAligned(tensors, length));
}

/**
 * The plan for rows of `columns` elements of `dtype`, taken in vectors of `length`, which are loaded one by one unless `isAligned`;
 * equal calls give one object.
 */
export function rowPlan(
  dtype: DType,
  columns: number,
  length: number,
  budget = defaultBudget,
  isAligned = true,
): RowPlan {
  let known = plans.get(budget);
  if (!known) plans.set(budget, (known = new Map()));
  const key =
    ((columns * (maxVectorBytes + 1) + length) * dtypeCodes + codeOf(dtype)) * 2 + Number(isAligned);
  let plan = known.get(key);
  if (!plan) known.set(key, (plan = makePlan(dtype, columns, length, budget, isAligned)));
  return plan;
}

/**
 * Launches a kernel whose parameters are pointers to `tensors`, by name, then `rows`, `columns` and `more`. The tensors all have
 * one shape and dtype, and are worked on row by row.
 */
export function launchRows(
  context: CudaContext,
  kernel: KernelVariants,
  tensors: Readonly<Record<string, MemoryView>>,
  more: Readonly<Record<string, number>> = {},
): void {
  const list = Object.values(tensors);
  const { size, shape } = list[0]!;
  if (size === 0) return;
  const columns = shape[shape.length - 1]!;
  const rows = size / columns;
  const { defines, rowsPerBlock } = planOfRows(columns, list, rowsAlone);
  const values: Record<string, number> = {};
  for (const name in tensors) values[name] = tensors[name]!.address;
  values.rows = rows;
  values.columns = columns;
  for (const name in more) values[name] = more[name]!;
  context
    .kernel(kernel(defines))
    .launch([Math.ceil(rows / rowsPerBlock), 1, 1], defines.BLOCK_THREADS, 0, kernel.byName(values));
}

function makePlan(
  dtype: DType,
  columns: number,
  length: number,
  budget: RegisterBudget,
  isAligned: boolean,
): RowPlan {
  const { threads, vectors } = shareOut(columns / length, length, budget);
  const blockThreads = Math.max(threads, threads <= 32 ? sharedBlockThreads : 0);
  return {
    defines: {
      ELEMENT: storageType(dtype),
      VECTOR_LENGTH: length,
      UNALIGNED_VECTORS: isAligned ? 0 : 1,
      ROW_THREADS: threads,
      ROW_VECTORS: vectors,
      BLOCK_THREADS: blockThreads,
    },
    rowsPerBlock: blockThreads / threads,
  };
}

function shareOut(vectors: number, length: number, { preferredElements, mostElements }: RegisterBudget) {
  if (vectors <= 32) return { threads: nextPowerOfTwo(vectors), vectors: 1 };
  const [preferred, most] = [preferredElements, mostElements].map((elements) =>
    Math.max(1, elements / length),
  );
  const widest = Math.min(maxBlockThreads, Math.max(32, nextPowerOfTwo(vectors / preferred!)));
  // Half the threads, with more vectors each, may leave fewer idle.
  const [best] = [widest, widest / 2]
    .map((threads) => ({ threads, vectors: Math.ceil(vectors / threads) }))
    .filter((share) => share.threads >= 32 && share.vectors <= most!)
    .sort((a, b) => a.threads * a.vectors - b.threads * b.vectors);
  return best ?? { threads: streamingThreads, vectors: 0 };
}

function nextPowerOfTwo(x: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, x)));
}
