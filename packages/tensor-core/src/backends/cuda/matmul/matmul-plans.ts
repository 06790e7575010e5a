import type { MatmulRequest } from '../../../op/cuda-lowering.ts';
import { type DType, byteSize } from '../../../base/dtype.ts';
import { DTypeError } from '../../../base/errors.ts';
import {
  type ColumnMajorLayout,
  type LtMatmul,
  type LtMatmulDescription,
  computeTypes,
  dataTypes,
} from '@roofline/cuda/parts';

/** The workspace that cublasLt may use; PyTorch's limit on Hopper. */
export const workspaceLimitBytes = 32 * 2 ** 20;

const mostAlignment = 256;
const alignmentWidth = 8;

/** How a product is to be made, besides what it is. */
export interface ProductTerms {
  readonly allowTf32: boolean;
  /** Undefined for all that the GPU has. */
  readonly multiprocessors?: number;
}

/**
 * A row-major product as cublasLt's column-major one. A row-major matrix read column by column is its own transpose, so the
 * operands change places: Dᵀ = op(B)ᵀ · op(A)ᵀ. Throws a DTypeError for dtypes that cublasLt does not multiply.
 */
export function describeMatmul(
  request: MatmulRequest,
  { allowTf32, multiprocessors }: ProductTerms,
): LtMatmulDescription {
  const { m, n, k, inputDType, outputDType, transposeA, transposeB } = request;
  const [rowsA, columnsA] = transposeA ? [k, m] : [m, k];
  const [rowsB, columnsB] = transposeB ? [n, k] : [k, n];
  return {
    ...typesOf(inputDType, allowTf32),
    transposeA: transposeB,
    transposeB: transposeA,
    a: columnMajor(request, inputDType, rowsB, columnsB, request.pitchB, request.batchStrideB),
    b: columnMajor(request, inputDType, rowsA, columnsA, request.pitchA, request.batchStrideA),
    d: columnMajor(request, outputDType, m, n, request.pitchD, request.batchStrideD),
    alignments: {
      a: alignmentOf(request.b, request.batchStrideB * byteSize(inputDType)),
      b: alignmentOf(request.a, request.batchStrideA * byteSize(inputDType)),
      c: alignmentOf(request.c ?? request.d, request.batchStrideD * byteSize(outputDType)),
      d: alignmentOf(request.d, request.batchStrideD * byteSize(outputDType)),
    },
    workspaceBytes: workspaceLimitBytes,
    ...(multiprocessors !== undefined && { multiprocessors }),
  };
}

function columnMajor(
  { batch }: MatmulRequest,
  dtype: DType,
  rows: number,
  columns: number,
  pitch: number,
  batchStride: number,
): ColumnMajorLayout {
  return {
    dataType: dataTypes[dtype as keyof typeof dataTypes],
    rows: columns,
    columns: rows,
    // The pitch of a single row is never used, but must look like one.
    pitch: Math.max(pitch, columns),
    batch,
    batchStride,
  };
}

function typesOf(dtype: DType, allowTf32: boolean): { computeType: number; scaleType: number } {
  if (dtype === 'float64') return { computeType: computeTypes.float64, scaleType: dataTypes.float64 };
  if (dtype === 'float16' || dtype === 'bfloat16' || dtype === 'float32') {
    const tf32 = dtype === 'float32' && allowTf32;
    return { computeType: tf32 ? computeTypes.tf32 : computeTypes.float32, scaleType: dataTypes.float32 };
  }
  throw new DTypeError(`matmul: CUDA multiplies floating-point matrices, not ${dtype}; cast() them.`);
}

/** The largest power of two, up to 256, that divides the addresses of all products of a batch. */
export function alignmentOf(address: number, batchStrideBytes: number): number {
  let alignment = mostAlignment;
  while (address % alignment !== 0 || batchStrideBytes % alignment !== 0) alignment /= 2;
  return alignment;
}

interface Entry {
  readonly request: MatmulRequest;
  readonly alignmentBits: number;
  readonly terms: ProductTerms;
  readonly matmul: LtMatmul;
  readonly next: Entry | undefined;
}

/** Prepared products, looked up by everything about a request except the addresses' upper bits and the scale. */
export class MatmulPlans {
  readonly #prepare: (description: LtMatmulDescription) => LtMatmul;
  readonly #entries = new Map<number, Entry>();

  constructor(prepare: (description: LtMatmulDescription) => LtMatmul) {
    this.#prepare = prepare;
  }

  find(request: MatmulRequest, terms: ProductTerms): LtMatmul {
    const alignmentBits =
      lowestBit(request.a) |
      (lowestBit(request.b) << alignmentWidth) |
      (lowestBit(request.d) << (2 * alignmentWidth)) |
      (lowestBit(request.c ?? request.d) << (3 * alignmentWidth));
    const hash = hashOf(request);
    const first = this.#entries.get(hash);
    for (let entry = first; entry; entry = entry.next) {
      if (
        entry.alignmentBits === alignmentBits &&
        entry.terms.allowTf32 === terms.allowTf32 &&
        entry.terms.multiprocessors === terms.multiprocessors &&
        sameProduct(entry.request, request)
      ) {
        return entry.matmul;
      }
    }
    const matmul = this.#prepare(describeMatmul(request, terms));
    this.#entries.set(hash, { request, alignmentBits, terms, matmul, next: first });
    return matmul;
  }
}

// The lowest set bit of an address, below 256; 0 if it is aligned to 256.
function lowestBit(address: number): number {
  const bits = address & (mostAlignment - 1);
  return bits & -bits;
}

function hashOf({ m, n, k, batch, transposeA, transposeB }: MatmulRequest): number {
  const mixed = Math.imul(Math.imul(Math.imul(m, 31) + n, 8191) + k, 127) + batch;
  return (mixed ^ (transposeA ? 0x5bd1e995 : 0) ^ (transposeB ? 0x1b873593 : 0)) | 0;
}

function sameProduct(x: MatmulRequest, y: MatmulRequest): boolean {
  return (
    x.m === y.m &&
    x.n === y.n &&
    x.k === y.k &&
    x.batch === y.batch &&
    x.inputDType === y.inputDType &&
    x.outputDType === y.outputDType &&
    x.transposeA === y.transposeA &&
    x.transposeB === y.transposeB &&
    x.pitchA === y.pitchA &&
    x.pitchB === y.pitchB &&
    x.pitchD === y.pitchD &&
    x.batchStrideA === y.batchStrideA &&
    x.batchStrideB === y.batchStrideB &&
    x.batchStrideD === y.batchStrideD
  );
}
