import { OutOfMemoryError, describeValue } from '@roofline/cuda/host';
import { DTypeError } from './errors.ts';
import type { Shape } from './shape.ts';

/** The names of all dtypes. */
export const dtypes = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64', 'bool'] as const;

/** The element types of tensors, by PyTorch's names. */
export type DType = (typeof dtypes)[number];

/** The host array that holds a dtype; float16 and bfloat16 appear as their raw 16 bits. */
export type TypedArray = Float32Array | Float64Array | Uint16Array | Int32Array | BigInt64Array | Uint8Array;

interface DTypeFacts {
  readonly byteSize: number;
  readonly category: 'bool' | 'integer' | 'float';
  /** The largest finite value of a floating-point dtype. */
  readonly largest?: number;
  readonly array: new (buffer: ArrayBuffer, byteOffset?: number, length?: number) => TypedArray;
}

const facts: Record<DType, DTypeFacts> = {
  float32: { byteSize: 4, category: 'float', largest: 2 ** 127 * (2 - 2 ** -23), array: Float32Array },
  float16: { byteSize: 2, category: 'float', largest: 65504, array: Uint16Array },
  bfloat16: { byteSize: 2, category: 'float', largest: 2 ** 127 * (2 - 2 ** -7), array: Uint16Array },
  float64: { byteSize: 8, category: 'float', array: Float64Array },
  int32: { byteSize: 4, category: 'integer', array: Int32Array },
  int64: { byteSize: 8, category: 'integer', array: BigInt64Array },
  bool: { byteSize: 1, category: 'bool', array: Uint8Array },
};

function factsOf(owner: string, dtype: DType): DTypeFacts {
  const known = facts[dtype] as DTypeFacts | undefined;
  if (known === undefined) throw noSuchDType(owner, dtype);
  return known;
}

/** Bytes of one element. Throws a DTypeError for a dtype that does not exist. */
export function byteSize(dtype: DType): number {
  return factsOf('byteSize', dtype).byteSize;
}

/** Whether elements are floating-point numbers. Throws a DTypeError for a dtype that does not exist. */
export function isFloatingPoint(dtype: DType): boolean {
  return factsOf('isFloatingPoint', dtype).category === 'float';
}

/** A typed array of `dtype` over existing memory. */
export function viewAs(dtype: DType, buffer: ArrayBuffer, byteOffset: number, size: number): TypedArray {
  return new facts[dtype].array(buffer, byteOffset, size);
}

/** A zeroed typed array for `size` elements of `dtype`. Throws an OutOfMemoryError where the host has no room for it. */
export function typedArray(dtype: DType, size: number): TypedArray {
  return viewAs(dtype, hostMemory(size * byteSize(dtype)), 0, size);
}

function hostMemory(byteLength: number): ArrayBuffer {
  try {
    return new ArrayBuffer(byteLength);
  } catch (cause) {
    const { arrayBuffers: heldBytes } = process.memoryUsage();
    const freeBytes = process.availableMemory();
    throw new OutOfMemoryError(
      { device: 'the host', requestedBytes: byteLength, heldBytes, freeBytes },
      { cause },
    );
  }
}

const rank = { bool: 0, integer: 1, float: 2 };

/**
 * The dtype of an op on `a` and `b`, by PyTorch's rule: the higher category wins (bool < integer < floating
 * point); inside one, the wider dtype; float16 with bfloat16 gives float32. Throws a DTypeError for a dtype that does
 * not exist.
 */
export function promote(a: DType, b: DType): DType {
  const [factsA, factsB] = [factsOf('promote', a), factsOf('promote', b)];
  if (a === b) return a;
  if (factsA.category !== factsB.category) {
    return rank[factsA.category] > rank[factsB.category] ? a : b;
  }
  if (factsA.byteSize === factsB.byteSize) return 'float32';
  return factsA.byteSize > factsB.byteSize ? a : b;
}

/**
 * The dtype of an op on two tensors, as torch.result_type: `promote`, but a tensor without dimensions beside one
 * with some counts only where its category is the higher one.
 */
export function resultType(
  a: { readonly dtype: DType; readonly shape: Shape },
  b: { readonly dtype: DType; readonly shape: Shape },
): DType {
  if (a.dtype === b.dtype) return a.dtype;
  const [dimensionsA, dimensionsB] = [a.shape.length, b.shape.length];
  if (dimensionsA > 0 === dimensionsB > 0) return promote(a.dtype, b.dtype);
  const [say, lessSay] = dimensionsA > 0 ? [a.dtype, b.dtype] : [b.dtype, a.dtype];
  return isHigherCategory(lessSay, say) ? lessSay : say;
}

/** Whether the category of `a` stands above that of `b`, where bool < integer < floating point. */
export function isHigherCategory(a: DType, b: DType): boolean {
  return rank[facts[a].category] > rank[facts[b].category];
}

/**
 * The dtype of an op on a tensor of `dtype` and a JavaScript number, which by PyTorch's rule has a category but no
 * width. JavaScript does not tell 2 from 2.0: a whole number is an integer, any other, NaN and Infinity a float.
 */
export function promoteWithNumber(dtype: DType, value: number): DType {
  if (isFloatingPoint(dtype)) return dtype;
  if (!Number.isInteger(value)) return 'float32';
  return dtype === 'bool' ? 'int64' : dtype;
}

/** Throws a DTypeError, which names `owner`, unless `dtype` is one of ours. */
export function checkDType(owner: string, dtype: DType): void {
  if (typeof dtype === 'string' && Object.hasOwn(facts, dtype)) return;
  throw noSuchDType(owner, dtype);
}

function noSuchDType(owner: string, dtype: unknown): DTypeError {
  const name = typeof dtype === 'string' ? dtype : describeValue(dtype);
  return new DTypeError(`${owner}: there is no dtype ${name}; take one of ${dtypes.join(', ')}.`);
}

/** Throws a DTypeError, which names `owner`, unless `value` is a number that an element of `dtype` can hold. */
export function checkElement(owner: string, dtype: DType, value: number): void {
  if (typeof value !== 'number') {
    throw new DTypeError(`${owner}: takes numbers, not ${describeValue(value)}.`);
  }
  const { category, byteSize: bytes } = facts[dtype];
  if (category !== 'integer') return;
  const limit = 2 ** (8 * bytes - 1);
  if (Number.isInteger(value) && value >= -limit && value < limit) return;
  throw new DTypeError(
    `${owner}: ${value} is no ${dtype}, which holds whole numbers from -2^${8 * bytes - 1} to ` +
      `2^${8 * bytes - 1} - 1; round it, or take a floating-point dtype.`,
  );
}

/**
 * Throws a DTypeError, which names `owner`, unless a tensor of `dtype` can be filled with `value`: as `checkElement`,
 * and a finite number must not round to an infinity. PyTorch fills so, but rounds the operands of an op.
 */
export function checkFilling(owner: string, dtype: DType, value: number): void {
  checkElement(owner, dtype, value);
  const { largest = Infinity } = facts[dtype];
  if (Math.abs(value) <= largest || !Number.isFinite(value)) return;
  throw new DTypeError(
    `${owner}: ${value} is beyond ${dtype}, whose largest value is ${largest}; take a wider dtype, or Infinity.`,
  );
}

/** The dtype of a floating-point function (exp, sqrt, mean...) of a tensor of `dtype`. */
export function floatingPoint(dtype: DType): DType {
  return isFloatingPoint(dtype) ? dtype : 'float32';
}

/**
 * The dtype that an element-wise op calculates in: its inputs' promoted dtype, or an output's if that is wider;
 * float32 for float16 and bfloat16.
 */
export function computeDType(inputs: readonly DType[], outputs: readonly DType[]): DType {
  let result = inputs[0]!;
  for (let i = 1; i < inputs.length; i++) result = promote(result, inputs[i]!);
  for (const output of outputs) result = promote(result, output);
  return result === 'float16' || result === 'bfloat16' ? 'float32' : result;
}
