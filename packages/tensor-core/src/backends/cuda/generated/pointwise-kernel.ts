import type { PointwiseValue } from '../../../op/cuda-lowering.ts';
import { type DType, byteSize, computeDType } from '../../../base/dtype.ts';
import { computeType, storageType } from '../../../op/kernel-arguments/c-types.ts';

/** What a generated element-wise kernel computes. */
export interface PointwiseSignature {
  /** A C identifier; the kernel's name. */
  readonly name: string;
  /** The dtypes of `a`, `b`, `c`... */
  readonly inputs: readonly DType[];
  readonly outputs: readonly DType[];
  /** One for each output, over `a`, `b`... and `s0`, `s1`... */
  readonly expressions: readonly string[];
  /** Intermediate values that the expressions use by name, in order. */
  readonly values?: readonly PointwiseValue[];
  readonly scalars: number;
}

/** Threads of a block of every generated kernel. */
export const blockSize = 256;

/** The inputs' names in expressions. */
export const inputNames = 'abcdefghijklmnop';

/** Which inputs the expressions read; the others are not passed to the kernel. */
export function inputsRead(expressions: readonly string[], inputCount: number): number[] {
  const identifiers = new Set(expressions.flatMap((text) => text.match(/[A-Za-z_]\w*/g) ?? []));
  return Array.from({ length: inputCount }, (_, i) => i).filter((i) => identifiers.has(inputNames[i]!));
}

/** How many elements a thread loads or stores at once: at most 16 bytes of the widest type. */
export function vectorLengthOf(dtypes: readonly DType[]): number {
  return 16 / Math.max(...dtypes.map(byteSize));
}

/** The dtype of the scalars `s0`... as the kernel takes them. */
export function scalarDType({ inputs, outputs }: PointwiseSignature): DType {
  return computeDType(inputs, outputs);
}

/**
 * All operands dense and of one size, except that inputs in `broadcast` are a single element. Parameters: the inputs read, the
 * outputs, int64 size, the scalars. One vector per thread, and as many threads as vectors: on an H200 that moves 4.2 TB/s,
 * where a loop in as many threads as fit at once moves 3.9.
 */
export function densePointwiseSource(
  signature: PointwiseSignature,
  read: readonly number[],
  broadcast: ReadonlySet<number>,
  vectorLength: number,
): string {
  const dense = read.filter((i) => !broadcast.has(i));
  const { inputs, outputs } = signature;
  const value = (i: number, element: string) =>
    broadcast.has(i) ? inputNames[i]! : `convert<Compute>(${element})`;
  return `${prologue(signature, read)}
constexpr int kVector = ${vectorLength};

extern "C" __global__ void __launch_bounds__(kThreads) ${signature.name}(${parameters(signature, read, ['int64 size'])}) {
  const int64 v = static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x;
  const int64 vectors = size / kVector;
${lines(
  read.filter((i) => broadcast.has(i)),
  (i) => `  const Compute ${inputNames[i]} = convert<Compute>(in${i}[0]);`,
)}
  if (v < vectors) {
${lines(dense, (i) => `    const Vector<${storageType(inputs[i]!)}, kVector> vector${i} = load_vector<kVector>(in${i} + v * kVector);`)}
${lines(outputs, (dtype, i) => `    Vector<${storageType(dtype)}, kVector> result${i};`)}
#pragma unroll
    for (int j = 0; j < kVector; j++) {
      ${evaluate(
        signature,
        read,
        (i) => value(i, `vector${i}[j]`),
        (i) => `result${i}[j]`,
      )}
    }
${lines(outputs, (_, i) => `    store_vector(out${i} + v * kVector, result${i});`)}
  }
  const int64 rest = vectors * kVector + v;
  if (rest < size) {
    ${evaluate(
      signature,
      read,
      (i) => value(i, `in${i}[rest]`),
      (i) => `out${i}[rest]`,
    )}
  }
}
`;
}

/** How a strided kernel walks; the bytes of its Layout parameter follow from it. */
export interface StridedWalk {
  readonly rank: number;
  /** Whether offsets need 64 bits. */
  readonly wide: boolean;
  readonly vectorLength: number;
  /** Inputs that repeat along the innermost dimension, for vectors longer than one. */
  readonly broadcast: ReadonlySet<number>;
}

/**
 * Operands of any strides. Parameters: the inputs read, the outputs, a Layout, the scalars. The Layout holds
 * the iteration space, innermost dimension first and counted in vectors, then the strides of the inputs read
 * and the outputs, in elements; see `writeLayout`.
 */
export function stridedPointwiseSource(
  signature: PointwiseSignature,
  read: readonly number[],
  walk: StridedWalk,
): string {
  const { outputs, inputs } = signature;
  const { rank, wide, vectorLength, broadcast } = walk;
  const offset = (operand: number) => `offset${operand}`;
  const operands = Array.from({ length: read.length + outputs.length }, (_, o) => o);
  const value = (i: number) => (broadcast.has(i) ? inputNames[i]! : `convert<Compute>(vector${i}[j])`);
  return `${prologue(signature, read)}
constexpr int kVector = ${vectorLength};
constexpr int kRank = ${rank};
${wide ? wideLayout(operands.length) : narrowLayout(operands.length)}

extern "C" __global__ void __launch_bounds__(kThreads) ${signature.name}(${parameters(signature, read, ['const __grid_constant__ Layout layout'])}) {
  const Index v = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  if (v < layout.count) {
    Index rest = v;
${lines(operands, (o) => `    Index ${offset(o)} = 0;`)}
#pragma unroll
    for (int d = 0; d < kRank - 1; d++) {
      const Index quotient = divide(layout, rest, d);
      const Index coordinate = rest - quotient * layout.lengths[d];
${lines(operands, (o) => `      ${offset(o)} += coordinate * layout.strides[${o}][d];`)}
      rest = quotient;
    }
${lines(operands, (o) => `    ${offset(o)} += rest * layout.strides[${o}][kRank - 1];`)}
${lines(read, (i, o) =>
  broadcast.has(i)
    ? `    const Compute ${inputNames[i]} = convert<Compute>(in${i}[${offset(o)}]);`
    : `    const Vector<${storageType(inputs[i]!)}, kVector> vector${i} = load_vector<kVector>(in${i} + ${offset(o)});`,
)}
${lines(outputs, (dtype, i) => `    Vector<${storageType(dtype)}, kVector> result${i};`)}
#pragma unroll
    for (int j = 0; j < kVector; j++) {
      ${evaluate(signature, read, value, (i) => `result${i}[j]`)}
    }
${lines(outputs, (_, i) => `    store_vector(out${i} + ${offset(read.length + i)}, result${i});`)}
  }
}
`;
}

// Fewer than 2^31 vectors: divides by multiplication, see divisor.ts.
function narrowLayout(operands: number): string {
  return `
using Index = uint32;
struct Layout {
  uint32 count;
  uint32 lengths[kRank];
  uint32 multipliers[kRank];
  uint32 shifts[kRank];
  uint32 strides[${operands}][kRank];
};

__device__ __forceinline__ Index divide(const Layout& layout, Index x, int d) {
  return (__umulhi(x, layout.multipliers[d]) + x) >> layout.shifts[d];
}`;
}

function wideLayout(operands: number): string {
  return `
using Index = int64;
struct Layout {
  int64 count;
  int64 lengths[kRank];
  int64 strides[${operands}][kRank];
};

__device__ __forceinline__ Index divide(const Layout& layout, Index x, int d) { return x / layout.lengths[d]; }`;
}

function prologue(signature: PointwiseSignature, read: readonly number[]): string {
  return `#include "prelude.cuh"

constexpr int kThreads = ${blockSize};
${evaluateSource(signature, read)}`;
}

/**
 * Source of `Compute`, the type to calculate in, and of `evaluate`, which takes the inputs read, the scalars and references to
 * the outputs.
 */
export function evaluateSource(signature: PointwiseSignature, read: readonly number[]): string {
  const { outputs, expressions, values = [] } = signature;
  const arguments_ = [
    ...read.map((i) => `Compute ${inputNames[i]}`),
    ...scalarNames(signature).map((name) => `Compute ${name}`),
    ...outputs.map((dtype, i) => `${storageType(dtype)}& y${i}`),
  ];
  return `using Compute = ${computeType(scalarDType(signature))};

__device__ __forceinline__ void evaluate(${arguments_.join(', ')}) {
${lines(values, ({ name, dtype, text }) => `  const Compute ${name} = ${dtype ? `as_stored<${storageType(dtype)}, Compute>(${text})` : text};`)}
${lines(expressions, (text, i) => `  y${i} = convert<${storageType(outputs[i]!)}>(${text});`)}
}
`;
}

function parameters(
  signature: PointwiseSignature,
  read: readonly number[],
  middle: readonly string[],
): string {
  return [
    ...read.map((i) => `const ${storageType(signature.inputs[i]!)}* in${i}`),
    ...signature.outputs.map((dtype, i) => `${storageType(dtype)}* out${i}`),
    ...middle,
    ...scalarNames(signature).map((name) => `Compute ${name}`),
  ].join(', ');
}

/** A call of `evaluate`, with the texts that each input is read from and each output written to. */
export function evaluate(
  signature: PointwiseSignature,
  read: readonly number[],
  value: (input: number) => string,
  result: (output: number) => string,
): string {
  const arguments_ = [
    ...read.map(value),
    ...scalarNames(signature),
    ...signature.outputs.map((_, i) => result(i)),
  ];
  return `evaluate(${arguments_.join(', ')});`;
}

/** The names of the scalars in expressions. */
export function scalarNames({ scalars }: PointwiseSignature): string[] {
  return Array.from({ length: scalars }, (_, i) => `s${i}`);
}

function lines<T>(items: readonly T[], line: (item: T, index: number) => string): string {
  return items.map(line).join('\n');
}
