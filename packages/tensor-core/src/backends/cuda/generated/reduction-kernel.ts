import type { ReductionKernel } from '../../../op/cuda-lowering.ts';
import { type DType, byteSize, isFloatingPoint, promote } from '../../../base/dtype.ts';
import { computeType, storageType } from '../../../op/kernel-arguments/c-types.ts';
import { blockSize } from './pointwise-kernel.ts';
import type { ReductionPass } from './reduction-plan.ts';

/** A generated reduction kernel's types and texts. */
export interface ReductionSignature {
  /** A C identifier; the kernel's name. */
  readonly name: string;
  readonly input: DType;
  readonly output: DType;
  /** The dtype of running results; float32 for float16 and bfloat16. */
  readonly accumulator: DType;
  readonly identity: ReductionKernel['identity'];
  /** Absent if elements are folded as they are, and in the second of two passes. */
  readonly term?: string | undefined;
  readonly combine: string;
  /** `x` for the first of two passes. */
  readonly finish: string;
}

/**
 * The dtype in which `input` is folded to `output`: float64 for integers to floating point, as a mean, so that none are lost.
 */
export function accumulatorDType(input: DType, output: DType): DType {
  if (!isFloatingPoint(input) && isFloatingPoint(output)) return 'float64';
  const wider = promote(input, output);
  return wider === 'float16' || wider === 'bfloat16' ? 'float32' : wider;
}

/** The offset of `n` among the parameters, in bytes. */
export const countOffset = 56;

/** The offset of `centers`, which kernels with a term have. */
export const centersOffset = 64;

/** The bytes of all parameters. */
export function reductionArgumentBytes(accumulator: DType, hasTerm: boolean): number {
  return hasTerm ? centersOffset + 8 : countOffset + byteSize(accumulator);
}

/**
 * Parameters: input, output, int64 outer, length, inner, chunk, chunks, n, the count that `finish` reads, and with a
 * term centers, [outer, inner]. The output is [outer, chunks, inner]. The order of every fold depends on the shape alone, so equal inputs
 * give equal bits.
 */
export function reductionSource(
  signature: ReductionSignature,
  pass: Pick<ReductionPass, 'kind' | 'width' | 'vectorLength'>,
): string {
  const { name, input, output, accumulator, identity, term, combine, finish } = signature;
  return `#include "prelude.cuh"

constexpr int kThreads = ${blockSize};
constexpr int kVector = ${pass.vectorLength};
using Input = ${storageType(input)};
using Output = ${storageType(output)};
using Accumulator = ${computeType(accumulator)};

struct Combine {
  __device__ __forceinline__ Accumulator operator()(Accumulator x, Accumulator y) const {
    return static_cast<Accumulator>(${combine});
  }
};

__device__ __forceinline__ Output finish(Accumulator x, Accumulator n) { return convert<Output>(${finish}); }

__device__ __forceinline__ Accumulator identity() {
  return ${identity === 'zero' ? 'static_cast<Accumulator>(0)' : `${identity}<Accumulator>()`};
}

__device__ __forceinline__ Accumulator term(Accumulator x, Accumulator center) {
  return static_cast<Accumulator>(${term ?? 'x'});
}

/** Folds kVector neighbouring elements into as many running results. */
__device__ __forceinline__ void accumulate(
    Accumulator (&partial)[kVector], const Input* address, const Accumulator (&center)[kVector]) {
  const Vector<Input, kVector> vector = load_vector<kVector>(address);
#pragma unroll
  for (int j = 0; j < kVector; j++) {
    partial[j] = Combine()(partial[j], term(convert<Accumulator>(vector[j]), center[j]));
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) ${name}(
    const Input* input, Output* output, int64 outer, int64 length, int64 inner, int64 chunk, int64 chunks, Accumulator n${
      term === undefined ? '' : ', const Accumulator* centers'
    }) {
  Accumulator partial[kVector];
  Accumulator center[kVector] = {};
#pragma unroll
  for (int j = 0; j < kVector; j++) partial[j] = identity();
${pass.kind === 'rows' ? rowsBody(pass.width, term !== undefined) : columnsBody(term !== undefined)}}
`;
}

/** Reads the center of each running result, whose elements lie at `at`. */
const loadCenters = (at: string) => `
#pragma unroll
  for (int j = 0; j < kVector; j++) center[j] = centers[${at}];`;

function rowsBody(width: number, hasTerm: boolean): string {
  return `
  constexpr int kWidth = ${width};
  const int lane = threadIdx.x % kWidth;
  const int64 group = static_cast<int64>(blockIdx.x) * (kThreads / kWidth) + threadIdx.x / kWidth;
  const int64 row = chunks == 1 ? group : group / chunks;
  if (row >= outer) return;
  const int64 begin = (group - row * chunks) * chunk;
  const int64 end = begin + chunk < length ? begin + chunk : length;
  const Input* source = input + row * length;${hasTerm ? loadCenters('row') : ''}
#pragma unroll 4
  for (int64 i = begin + lane * kVector; i < end; i += kWidth * kVector) accumulate(partial, source + i, center);

  Accumulator x = partial[0];
#pragma unroll
  for (int j = 1; j < kVector; j++) x = Combine()(x, partial[j]);
  x = ${width === blockSize ? 'block_reduce<kThreads>(x, Combine())' : 'warp_reduce(x, Combine())'};
  if (lane == 0) output[group] = finish(x, n);
`;
}

function columnsBody(hasTerm: boolean): string {
  return `
  constexpr int kColumns = 32 * kVector;
  constexpr int kLines = kThreads / 32;
  __shared__ Accumulator lines[kLines][kColumns];
  const int lane = threadIdx.x % 32;
  const int line = threadIdx.x / 32;
  const uint32 columnBlocks = static_cast<uint32>((inner + kColumns - 1) / kColumns);
  const uint32 columnBlock = blockIdx.x % columnBlocks;
  const int64 piece = blockIdx.x / columnBlocks;  // outer index · chunks + chunk
  const int64 outerIndex = piece / chunks;
  const int64 begin = (piece - outerIndex * chunks) * chunk;
  const int64 end = begin + chunk < length ? begin + chunk : length;
  const int64 firstColumn = static_cast<int64>(columnBlock) * kColumns;
  const int64 column = firstColumn + lane * kVector;
  if (column < inner) {
    const Input* source = input + outerIndex * length * inner + column;${hasTerm ? loadCenters('outerIndex * inner + column + j') : ''}
#pragma unroll 4
    for (int64 i = begin + line; i < end; i += kLines) accumulate(partial, source + i * inner, center);
  }
#pragma unroll
  for (int j = 0; j < kVector; j++) lines[line][lane * kVector + j] = partial[j];
  __syncthreads();
  for (int c = threadIdx.x; c < kColumns && firstColumn + c < inner; c += kThreads) {
    Accumulator x = lines[0][c];
#pragma unroll
    for (int l = 1; l < kLines; l++) x = Combine()(x, lines[l][c]);
    output[piece * inner + firstColumn + c] = finish(x, n);
  }
`;
}
