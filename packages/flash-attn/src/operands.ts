import {
  DTypeError,
  ShapeError,
  Tensor,
  type TensorSpec,
  describeValue,
  formatShape,
  isFloatingPoint,
} from '@roofline/tensor-core';
import { autocastOperandDType } from './dtypes.ts';

/** The lengths that the operands of attention have: q [batch, heads, queries, headDimension], and so on. */
export interface AttentionSizes {
  readonly batch: number;
  readonly heads: number;
  /** Heads of k and v: `heads / keyHeads` neighbouring heads of q share one. */
  readonly keyHeads: number;
  readonly queries: number;
  readonly keys: number;
  readonly headDimension: number;
}

/** Of what kernels hold in shared memory and registers. */
export const largestHeadDimension = 256;

/** Throws a ShapeError or DTypeError, which names `op`, unless q, k and v are operands of attention. */
export function attentionSizes(op: string, q: TensorSpec, k: TensorSpec, v: TensorSpec): AttentionSizes {
  const refuse = (problem: string) => refusal(op, q, k, v, problem);
  if ([q, k, v].some(({ shape }) => shape.length !== 4)) {
    throw refuse('each must be [batch, heads, sequence, head dimension]; reshape() and transpose() them.');
  }
  checkDTypes(op, q, k, v);
  const [batch, heads, queries, headDimension] = q.shape as [number, number, number, number];
  const [batchOfK, keyHeads, keys, dimensionOfK] = k.shape as [number, number, number, number];
  if (k.shape.some((length, i) => length !== v.shape[i])) {
    throw refuse('keys and values must be of one shape; expand() the one that is shared.');
  }
  if (batchOfK !== batch) throw refuse('all must be of one batch size; expand() what is shared.');
  if (dimensionOfK !== headDimension) throw refuse('all must have the same head dimension.');
  if (keyHeads === 0 ? heads !== 0 : heads % keyHeads !== 0) {
    throw refuse(`the heads of q, ${heads}, must be a multiple of those of k and v, ${keyHeads}.`);
  }
  if (headDimension < 1 || headDimension > largestHeadDimension) {
    throw refuse(
      `the head dimension must be from 1 to ${largestHeadDimension}, not ${headDimension}; take more heads.`,
    );
  }
  return { batch, heads, keyHeads, queries, keys, headDimension };
}

function refusal(op: string, q: TensorSpec, k: TensorSpec, v: TensorSpec, problem: string): ShapeError {
  const shapes = `q ${formatShape(q.shape)}, k ${formatShape(k.shape)}, v ${formatShape(v.shape)}`;
  return new ShapeError(`${op}: ${shapes}: ${problem}`);
}

/**
 * The sizes of operands that a caller gave, and that autocast may make alike. Throws a DTypeError for what is not a
 * tensor, a DisposedError, or as `attentionSizes` does.
 */
export function checkOperands(op: string, q: Tensor, k: Tensor, v: Tensor): AttentionSizes {
  for (const operand of [q, k, v]) {
    if (!(operand instanceof Tensor)) {
      throw new DTypeError(
        `${op}: takes tensors q, k and v, not ${describeValue(operand)}; make them with tensor().`,
      );
    }
    operand.assertAlive(op);
  }
  const lowered = ({ shape, dtype }: Tensor) => ({ shape, dtype: autocastOperandDType(dtype) });
  return attentionSizes(op, lowered(q), lowered(k), lowered(v));
}

function checkDTypes(op: string, q: TensorSpec, k: TensorSpec, v: TensorSpec): void {
  if (q.dtype !== k.dtype || q.dtype !== v.dtype) {
    throw new DTypeError(
      `${op}: q, k and v are ${q.dtype}, ${k.dtype} and ${v.dtype}; cast() them to one dtype.`,
    );
  }
  if (!isFloatingPoint(q.dtype)) {
    throw new DTypeError(`${op}: q, k and v must be floating-point, not ${q.dtype}; cast() them first.`);
  }
}

/**
 * Pairs of a query and a key that it sees, in one head. Under a causal mask query i sees the keys
 * j <= i + keys - queries, so that the last one sees them all.
 */
export function visiblePairs({ queries, keys }: AttentionSizes, causal: boolean): number {
  if (!causal) return queries * keys;
  const seeing = Math.min(queries, keys);
  return seeing * keys - (seeing * (seeing - 1)) / 2;
}
