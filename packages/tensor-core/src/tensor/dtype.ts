export const dtypes = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64', 'bool'] as const;

/** The element types of tensors, by PyTorch's names. */
export type DType = (typeof dtypes)[number];

/** The host array that holds a dtype; float16 and bfloat16 appear as their raw 16 bits. */
export type TypedArray = Float32Array | Float64Array | Uint16Array | Int32Array | BigInt64Array | Uint8Array;

interface DTypeFacts {
  readonly byteSize: number;
  readonly category: 'bool' | 'integer' | 'float';
  readonly array: new (buffer: ArrayBuffer, byteOffset?: number, length?: number) => TypedArray;
}

const facts: Record<DType, DTypeFacts> = {
  float32: { byteSize: 4, category: 'float', array: Float32Array },
  float16: { byteSize: 2, category: 'float', array: Uint16Array },
  bfloat16: { byteSize: 2, category: 'float', array: Uint16Array },
  float64: { byteSize: 8, category: 'float', array: Float64Array },
  int32: { byteSize: 4, category: 'integer', array: Int32Array },
  int64: { byteSize: 8, category: 'integer', array: BigInt64Array },
  bool: { byteSize: 1, category: 'bool', array: Uint8Array },
};

/** Bytes of one element. */
export function byteSize(dtype: DType): number {
  return facts[dtype].byteSize;
}

export function isFloatingPoint(dtype: DType): boolean {
  return facts[dtype].category === 'float';
}

/** A typed array of `dtype` over existing memory. */
export function viewAs(dtype: DType, buffer: ArrayBuffer, byteOffset: number, size: number): TypedArray {
  return new facts[dtype].array(buffer, byteOffset, size);
}

/** A zeroed typed array for `size` elements of `dtype`. */
export function typedArray(dtype: DType, size: number): TypedArray {
  return viewAs(dtype, new ArrayBuffer(size * byteSize(dtype)), 0, size);
}

const rank = { bool: 0, integer: 1, float: 2 };

/**
 * The dtype of an op on `a` and `b`, by PyTorch's rule: the higher category wins (bool < integer < floating
 * point); inside one, the wider dtype; float16 with bfloat16 gives float32.
 */
export function promote(a: DType, b: DType): DType {
  if (a === b) return a;
  const [factsA, factsB] = [facts[a], facts[b]];
  if (factsA.category !== factsB.category) {
    return rank[factsA.category] > rank[factsB.category] ? a : b;
  }
  if (factsA.byteSize === factsB.byteSize) return 'float32';
  return factsA.byteSize > factsB.byteSize ? a : b;
}

/** The dtype of an op on a tensor of `dtype` and a JavaScript number, which by PyTorch's rule has no width. */
export function promoteWithNumber(dtype: DType, value: number): DType {
  if (isFloatingPoint(dtype)) return dtype;
  if (!Number.isInteger(value)) return 'float32';
  return dtype === 'bool' ? 'int64' : dtype;
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
