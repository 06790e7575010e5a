import { describeValue } from '../base/check-value.ts';
import { checkOptions } from '../base/check-options.ts';
import { DeviceError } from '../base/errors.ts';
import { HostMemory } from '../base/host/host-memory.ts';
import type { CudaDriver } from '../driver/driver.ts';

/** Bytes of a CUtensorMap: a kernel takes it as a `T` parameter, declared `const __grid_constant__`. */
export const tensorMapBytes = 128;

// Enumerators and limits of cuTensorMapEncodeTiled, from cuda.h.
const elementTypes = {
  bool: { number: 0, bytes: 1 },
  int32: { number: 3, bytes: 4 },
  int64: { number: 5, bytes: 8 },
  float16: { number: 6, bytes: 2 },
  float32: { number: 7, bytes: 4 },
  float64: { number: 8, bytes: 8 },
  bfloat16: { number: 9, bytes: 2 },
} as const;
const swizzles = { none: 0, '32B': 1, '64B': 2, '128B': 3 } as const;
const promotions = { none: 0, '64B': 1, '128B': 2, '256B': 3 } as const;
const fills = { zero: 0, nan: 1 } as const;
const noInterleave = 0;
const maxRank = 5;
const maxLength = 2 ** 32;
const maxStrideBytes = 2 ** 40;
const maxBox = 256;
const maxElementStride = 8;
const alignment = 16;

/** An array in device memory as the TMA unit of compute capability 9.0 and newer copies it, box by box. */
export interface TensorMapDescription {
  readonly dtype: keyof typeof elementTypes;
  /** Of the first element; a multiple of 16. */
  readonly address: number;
  /** Elements along each of 1 to 5 dimensions, the innermost first. */
  readonly dimensions: readonly number[];
  /** From one index to the next along each dimension but the innermost, which is dense; multiples of 16. */
  readonly strideBytes: readonly number[];
  /** Elements that one copy takes along each dimension, at most 256; those of the innermost fill multiples of 16 bytes. */
  readonly box: readonly number[];
  /** Steps between the elements that are copied, 1 to 8; all of them 1 unless given. */
  readonly elementStrides?: readonly number[];
  /** How 16-byte chunks change places in shared memory; a box's innermost dimension fits it. `none` unless given. */
  readonly swizzle?: keyof typeof swizzles;
  /** What L2 reads at once; `none` unless given. */
  readonly l2Promotion?: keyof typeof promotions;
  /** What stands for elements outside of the array; `zero` unless given. */
  readonly outside?: keyof typeof fills;
}

/** Makes tensor maps by cuTensorMapEncodeTiled. */
export class TensorMapEncoder {
  readonly #driver: CudaDriver;
  // Lengths, strides, box and element strides of the map at hand.
  readonly #arguments = new HostMemory(256);

  constructor(driver: CudaDriver) {
    this.#driver = driver;
  }

  /** Writes the map into `to`. Throws a DeviceError for what TMA cannot describe. */
  encode(description: TensorMapDescription, to: HostMemory, byteOffset: number): void {
    check(description);
    if (byteOffset % 64 !== 0) {
      throw new DeviceError(`Tensor map: it is written at a multiple of 64 bytes, not ${byteOffset}.`);
    }
    const { dtype, address, dimensions, strideBytes, box, elementStrides } = description;
    const { swizzle = 'none', l2Promotion = 'none', outside = 'zero' } = description;
    const memory = this.#arguments;
    const rank = dimensions.length;
    for (let i = 0; i < rank; i++) {
      memory.writeInt64(8 * i, dimensions[i]!);
      if (i > 0) memory.writeInt64(40 + 8 * i, strideBytes[i - 1]!);
      memory.words[24 + i] = box[i]!;
      memory.words[32 + i] = elementStrides?.[i] ?? 1;
    }
    const start = memory.address;
    const result = this.#driver.functions.cuTensorMapEncodeTiled(
      to.address + byteOffset,
      elementTypes[dtype].number,
      rank,
      address,
      start,
      start + 48,
      start + 96,
      start + 128,
      noInterleave,
      swizzles[swizzle],
      promotions[l2Promotion],
      fills[outside],
    );
    this.#driver.check(result, 'cuTensorMapEncodeTiled');
  }
}

function check(description: TensorMapDescription): void {
  checkOptions('encodeTensorMap', description, [...required, ...optional]);
  const { dtype, address, dimensions, strideBytes, box, elementStrides, swizzle = 'none' } = description;
  const { l2Promotion = 'none', outside = 'zero' } = description;
  requireOneOf('dtype', dtype, elementTypes);
  requireOneOf('swizzle', swizzle, swizzles);
  requireOneOf('l2Promotion', l2Promotion, promotions);
  requireOneOf('outside', outside, fills);
  requireList('dimensions', dimensions);
  const rank = dimensions.length;
  if (rank < 1 || rank > maxRank) fail(`TMA copies 1 to ${maxRank} dimensions, not ${rank}`);
  if (!Number.isSafeInteger(address) || address <= 0 || address % alignment !== 0) {
    fail(`the address ${describeValue(address)} must be a multiple of ${alignment} bytes`);
  }
  requireEach('dimensions', dimensions, rank, 1, maxLength);
  requireEach('strideBytes', strideBytes, rank - 1, 0, maxStrideBytes - 1);
  requireEach('box', box, rank, 1, maxBox);
  if (elementStrides !== undefined) requireEach('elementStrides', elementStrides, rank, 1, maxElementStride);
  for (const bytes of strideBytes) {
    if (bytes % alignment !== 0) fail(`strideBytes ${list(strideBytes)} must be multiples of ${alignment}`);
  }
  const innerBytes = box[0]! * elementTypes[dtype].bytes;
  if (innerBytes % alignment !== 0) {
    fail(
      `box ${list(box)} takes ${innerBytes} bytes of the innermost dimension; take a multiple of ${alignment}`,
    );
  }
  const mostBytes = swizzle === 'none' ? Infinity : Number.parseInt(swizzle, 10);
  if (innerBytes > mostBytes) {
    fail(
      `box ${list(box)} takes ${innerBytes} bytes of the innermost dimension, more than a swizzle of ${swizzle}`,
    );
  }
}

const required = ['dtype', 'address', 'dimensions', 'strideBytes', 'box'];
const optional = ['elementStrides', 'swizzle', 'l2Promotion', 'outside'];

function requireOneOf(name: string, value: string, known: object): void {
  if (typeof value === 'string' && Object.hasOwn(known, value)) return;
  fail(`${name} must be one of ${Object.keys(known).join(', ')}, not ${describeValue(value)}`);
}

function requireEach(
  name: string,
  values: readonly number[],
  count: number,
  least: number,
  most: number,
): void {
  requireList(name, values);
  if (values.length !== count) fail(`${name} ${list(values)} must have ${count} entries`);
  for (const value of values) {
    if (!Number.isInteger(value) || value < least || value > most) {
      fail(`${name} ${list(values)} must be whole numbers from ${least} to ${most}`);
    }
  }
}

function requireList(name: string, values: readonly number[]): void {
  if (!Array.isArray(values)) fail(`${name} must be a list of whole numbers, not ${describeValue(values)}`);
}

function list(values: readonly number[]): string {
  return `[${values.map(String).join(', ')}]`;
}

function fail(reason: string): never {
  throw new DeviceError(`Tensor map: ${reason}.`);
}
