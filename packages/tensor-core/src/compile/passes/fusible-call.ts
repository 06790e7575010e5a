import type { Call, Operand } from '../graph/graph.ts';
import { embeddingOp } from '../../ops/index/embedding.ts';
import { byteSize, computeDType } from '../../base/dtype.ts';
import { sameShape } from '../../base/shape.ts';
import type { FusedSignature, OperandWalk } from '../../backends/cuda/generated/kernel-fusion.ts';
import { isOp } from './is-op.ts';
import { isSameOperand } from './operands.ts';
import { computeDTypeOf, placesRead, textsOf } from './pointwise-call.ts';

/** Kernels load and store the operands of prologues and epilogues in vectors of so many bytes. */
const alignment = 16;

/** An element-wise call, or an embedding, that can run inside a kernel with which it shares an operand. */
export interface FusibleCall {
  readonly call: Call;
  readonly shared: Operand;
  /** Whether the shared operand is also written to memory. */
  readonly storesShared: boolean;
  /** The inputs that the call's expressions read, by index; the shared operand has no walk. */
  readonly read: FusedSignature['read'];
  /** The row numbers that an embedding looks up. */
  readonly ids?: Operand;
}

/**
 * `call` as a prologue of a kernel that reads the rows of `shared`, an output of the call, or as an epilogue of one that
 * writes them, an input of the call; null where it cannot be that.
 */
export function fusibleCall(call: Call, shared: Operand, role: 'prologue' | 'epilogue'): FusibleCall | null {
  const { op, inputs, outputs, live } = call;
  if (isOp(op, embeddingOp)) return role === 'prologue' ? lookupOf(call, shared) : null;
  if (op.cuda.kind !== 'pointwise' || live !== null) return null;
  const overwrites = outputs.some(({ storage }) => storage === shared.storage);
  if (role === 'epilogue' && overwrites) return null;
  if (!outputs.every((output) => isDense(output, shared)) || !isDense(shared, shared)) return null;
  const dtype = computeDTypeOf(inputs, outputs);
  if (dtype !== 'float32' && dtype !== 'float64') return null;
  const read = placesRead(call).map((input) => {
    const operand = inputs[input]!;
    const isShared = role === 'epilogue' && isSameOperand(operand, shared);
    return { input, walk: isShared ? null : walkOf(operand, shared) };
  });
  const isReadable = read.every(
    ({ input, walk }) => walk !== null || (role === 'epilogue' && isSameOperand(inputs[input]!, shared)),
  );
  const isRead = role === 'prologue' || read.some(({ walk }) => walk === null);
  return isReadable && isRead ? { call, shared, storesShared: true, read } : null;
}

/** An embedding whose output a kernel reads row by row. */
function lookupOf(call: Call, shared: Operand): FusibleCall | null {
  const [table, ids] = call.inputs as readonly [Operand, Operand];
  const [rows] = call.outputs as readonly [Operand];
  const dtype = computeDType([table.dtype], []);
  const isFloat = dtype === 'float32' || dtype === 'float64';
  const isPlain = table.isContiguous && isAligned(table) && ids.isContiguous && isDense(rows, shared);
  if (call.live !== null || !isFloat || !isPlain) return null;
  return { call, shared, storesShared: true, read: [{ input: 0, walk: 'rows' }], ids };
}

/** What the kernel's header is generated from. */
export function signatureOf(fusible: FusibleCall): FusedSignature {
  const { call, shared, storesShared, read, ids } = fusible;
  if (ids) return lookupSignature(fusible, ids);
  const { op, inputs, outputs } = call;
  const isShared = (operand: Operand) => isSameOperand(operand, shared);
  return {
    pointwise: {
      name: op.name,
      inputs: inputs.map(({ dtype }) => dtype),
      outputs: outputs.map(({ dtype }) => dtype),
      ...textsOf(call),
      scalars: scalarsOf({ call }).length,
    },
    read,
    stores: outputs.map((output) => storesShared || !isShared(output)),
    storesResult: storesShared,
    result: outputs.findIndex(isShared),
  };
}

function lookupSignature(
  { call: { op, inputs, outputs }, storesShared, read }: FusibleCall,
  ids: Operand,
): FusedSignature {
  const [rows, columns] = inputs[0]!.shape as readonly [number, number];
  return {
    pointwise: {
      name: op.name,
      inputs: [inputs[0]!.dtype],
      outputs: [outputs[0]!.dtype],
      expressions: ['a'],
      values: [],
      scalars: 0,
    },
    read,
    stores: [storesShared],
    storesResult: storesShared,
    result: 0,
    lookup: { ids: ids.dtype, rows, columns },
  };
}

export function scalarsOf({ call: { op, attributes } }: Pick<FusibleCall, 'call'>): readonly number[] {
  return op.scalars?.(attributes as never) ?? [];
}

/** What it reads from memory and writes to it, in the order of its structure's members. */
export function inMemory({ call, shared, storesShared, read, ids }: FusibleCall): {
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
} {
  return {
    inputs: [
      ...read.filter(({ walk }) => walk !== null).map(({ input }) => call.inputs[input]!),
      ...(ids ? [ids] : []),
    ],
    outputs: call.outputs.filter((output) => storesShared || !isSameOperand(output, shared)),
  };
}

function walkOf(operand: Operand, rows: Operand): OperandWalk | null {
  if (isDense(operand, rows)) return 'dense';
  if (operand.size === 1) return 'one';
  const columns = rows.shape.at(-1)!;
  const isRow = operand.size === columns && operand.shape.at(-1) === columns;
  return isRow && operand.isContiguous && isAligned(operand) ? 'columns' : null;
}

function isDense(operand: Operand, rows: Operand): boolean {
  return operand.isContiguous && sameShape(operand.shape, rows.shape) && isAligned(operand);
}

function isAligned({ offset, dtype }: Operand): boolean {
  return (offset * byteSize(dtype)) % alignment === 0;
}
