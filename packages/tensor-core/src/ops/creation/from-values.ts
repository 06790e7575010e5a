import { requireTensor } from '../../op/require-tensor.ts';
import { checkFlag, checkOptions, describeValue } from '@roofline/cuda/host';
import type { Device } from '../../tensor/device.ts';
import { type DeviceSpec, deviceOf } from '../../backends/device-registry.ts';
import { DTypeError, ShapeError } from '../../base/errors.ts';
import { observers, tellHostWrite } from '../../op/observers.ts';
import { fillInPlace } from '../copy/in-place.ts';
import {
  type DType,
  type TypedArray,
  checkDType,
  checkFilling,
  byteSize,
  typedArray,
  viewAs,
} from '../../base/dtype.ts';
import { bytesOfArray, fromFunction, fromNumbers } from '../../tensor/host-values.ts';
import { type Shape, checkShape, formatShape, sizeOf } from '../../base/shape.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { Tensor } from '../../tensor/tensor.ts';

/** A new tensor's device and dtype, and whether it collects a gradient. */
export interface TensorOptions {
  /** Default float32. */
  dtype?: DType;
  /** Default cpu. */
  device?: DeviceSpec | Device;
  /** Whether backward passes collect its gradient. Default false. */
  requiresGrad?: boolean;
}

const tensorOptions: readonly (keyof TensorOptions)[] = ['dtype', 'device', 'requiresGrad'];
const defaults: TensorOptions = {};

/** The options, checked. */
export function checkTensorOptions(owner: string, options: TensorOptions | undefined): TensorOptions {
  if (options === undefined) return defaults;
  checkOptions(owner, options, tensorOptions);
  if (options.dtype !== undefined) checkDType(owner, options.dtype);
  if (options.requiresGrad !== undefined) checkFlag(owner, 'requiresGrad', options.requiresGrad);
  return options;
}

function allocate(owner: string, shape: Shape, options: TensorOptions): Tensor {
  checkShape(owner, shape);
  return Tensor.allocate(
    deviceOf(owner, options.device === undefined ? 'cpu' : options.device),
    options.dtype ?? 'float32',
    [...shape],
  );
}

// Comes last, when all values are written: a leaf that requires a gradient must not be written in place.
function finished(tensor: Tensor, options: TensorOptions): Tensor {
  return options.requiresGrad ? tensor.requiresGrad_() : tensor;
}

/** Uninitialised memory as a tensor. Throws a ShapeError or DTypeError. */
export function empty(shape: Shape, options?: TensorOptions): Tensor {
  return emptyFor('empty', shape, options);
}

/** The same for a function `owner`, which errors name. */
export function emptyFor(owner: string, shape: Shape, options?: TensorOptions): Tensor {
  const known = checkTensorOptions(owner, options);
  return finished(allocate(owner, shape, known), known);
}

/**
 * A tensor whose every element is `value`. Throws a ShapeError, or a DTypeError if the dtype cannot hold the value: integers
 * hold whole numbers in their range.
 */
export function full(shape: Shape, value: number, options?: TensorOptions): Tensor {
  return filled('full', shape, value, options);
}

/** A tensor of zeros. Throws a ShapeError or DTypeError. */
export function zeros(shape: Shape, options?: TensorOptions): Tensor {
  return filled('zeros', shape, 0, options);
}

/** A tensor of ones. Throws a ShapeError or DTypeError. */
export function ones(shape: Shape, options?: TensorOptions): Tensor {
  return filled('ones', shape, 1, options);
}

/** `full` for a function `owner`, which errors name. */
export function filled(
  owner: string,
  shape: Shape,
  value: number,
  options: TensorOptions | undefined,
): Tensor {
  const known = checkTensorOptions(owner, options);
  checkFilling(owner, known.dtype ?? 'float32', value);
  return scope(() => {
    const tensor = allocate(owner, shape, known);
    if (tensor.size > 0) fillInPlace(tensor, value);
    return finished(tensor, known);
  });
}

/** Zeros of another tensor's shape and, unless `options` say otherwise, its dtype and device. */
export function zerosLike(other: Tensor, options?: TensorOptions): Tensor {
  return filledLike('zerosLike', other, 0, options);
}

/** Ones of another tensor's shape and, unless `options` say otherwise, its dtype and device. */
export function onesLike(other: Tensor, options?: TensorOptions): Tensor {
  return filledLike('onesLike', other, 1, options);
}

function filledLike(owner: string, other: Tensor, value: number, options: TensorOptions | undefined): Tensor {
  requireTensor(owner, other);
  const { dtype = other.dtype, device = other.device, requiresGrad } = checkTensorOptions(owner, options);
  return filled(owner, other.shape, value, { dtype, device, requiresGrad });
}

/**
 * start, start + step... below `end` (above it, if the step is negative); with one argument 0, 1... below it. int64 if all
 * three are whole. Throws a ShapeError for a step of 0 or away from `end` and for arguments that are not finite, and a
 * DTypeError if the dtype cannot hold a value.
 */
export function arange(start: number, end?: number, step = 1, options?: TensorOptions): Tensor {
  const known = checkTensorOptions('arange', options);
  const [first, last] = end === undefined ? [0, start] : [start, end];
  if (![first, last, step].every(Number.isFinite) || step === 0) {
    throw new ShapeError(
      `arange: from ${String(first)} to ${String(last)} by ${String(step)}: all must be finite numbers, and the ` +
        'step not 0.',
    );
  }
  if ((last - first) / step < 0) {
    throw new ShapeError(
      `arange: steps of ${step} from ${first} lead away from ${last}; change the step's sign.`,
    );
  }
  // Not -0 for a negative step.
  const length = Math.max(0, Math.ceil((last - first) / step));
  const dtype = known.dtype ?? ([first, last, step].every(Number.isInteger) ? 'int64' : 'float32');
  if (length > mostNumbers) {
    throw new ShapeError(`arange: ${length} elements are too many to be made one by one, at most 2^32 - 1.`);
  }
  const values = fromFunction(dtype, length, (i) => first + i * step, 'arange');
  return fromElements('arange', values, [length], dtype, known);
}

/** How many elements a JavaScript array can hold. */
export const mostNumbers = 2 ** 32 - 1;

/** Numbers, nested as deep as the tensor has dimensions. */
export type NestedNumbers = number | readonly NestedNumbers[];

/**
 * A tensor of nested arrays of numbers, such as [[1, 2], [3, 4]]. Throws a ShapeError if they are ragged, and a DTypeError for
 * values that are not numbers, or that an integer dtype cannot hold, such as 0.5 and NaN.
 *
 * @example
 * ```ts
 * import { mul, sum, tensor } from '@roofline/tensor-core';
 *
 * const x = tensor([1, 2, 3], { requiresGrad: true });
 * sum(mul(x, x)).backward();
 * console.log(x.grad?.toArray()); // [2, 4, 6]
 * ```
 */
export function tensor(values: NestedNumbers, options?: TensorOptions): Tensor {
  const known = checkTensorOptions('tensor', options);
  const dtype = known.dtype ?? 'float32';
  const shape: number[] = [];
  for (let level: NestedNumbers | undefined = values; isList(level); level = level[0]) {
    shape.push(level.length);
    if (shape.length > mostDimensions) {
      throw new ShapeError(
        `tensor: lists are nested deeper than ${mostDimensions} levels, or hold themselves.`,
      );
    }
  }
  const flat: number[] = [];
  flatten(values, shape, 0, flat);
  return fromElements('tensor', fromNumbers(dtype, flat), shape, dtype, known);
}

/** More than anyone uses, as in NumPy. */
const mostDimensions = 64;

function isList(values: NestedNumbers | undefined): values is readonly NestedNumbers[] {
  return Array.isArray(values) || ArrayBuffer.isView(values);
}

function flatten(values: NestedNumbers, shape: Shape, depth: number, into: number[]): void {
  const nested = isList(values);
  if (!nested && typeof values !== 'number') {
    throw new DTypeError(`tensor: takes arrays of numbers, not of ${describeValue(values)}.`);
  }
  if (nested === (depth === shape.length) || (nested && values.length !== shape[depth])) {
    throw new ShapeError(
      `tensor: the nested arrays are ragged; the first elements say ${formatShape(shape)}.`,
    );
  }
  if (nested) for (const value of values) flatten(value, shape, depth + 1, into);
  else into.push(values);
}

/**
 * A tensor with the elements of a typed array, copied. The dtype is the array's own unless given: float16 and
 * bfloat16 are given as raw bits in a Uint16Array, bool as bytes. Throws a ShapeError or DTypeError.
 */
export function fromTypedArray(data: TypedArray, shape: Shape, options?: TensorOptions): Tensor {
  const known = checkTensorOptions('fromTypedArray', options);
  checkShape('fromTypedArray', shape);
  const dtype = known.dtype ?? dtypeOf(data);
  const expected = typedArray(dtype, 0).constructor;
  if (data?.constructor !== expected) {
    throw new DTypeError(
      `fromTypedArray: ${dtype} elements come as ${expected.name}, not as ${
        ArrayBuffer.isView(data) ? data.constructor.name : describeValue(data)
      }.`,
    );
  }
  if (data.length !== sizeOf(shape)) {
    throw new ShapeError(`fromTypedArray: ${data.length} elements do not fill ${formatShape(shape)}.`);
  }
  return fromElements('fromTypedArray', normalized(dtype, data), shape, dtype, known);
}

/**
 * A tensor from bytes as in memory and in files: row-major, little-endian, bools as bytes. Copied; float32 by default. Throws
 * a ShapeError or DTypeError.
 */
export function fromBytes(bytes: Uint8Array, shape: Shape, options?: TensorOptions): Tensor {
  const known = checkTensorOptions('fromBytes', options);
  checkShape('fromBytes', shape);
  const dtype = known.dtype ?? 'float32';
  if (!(bytes instanceof Uint8Array)) {
    throw new DTypeError(`fromBytes: takes a Uint8Array, not ${describeValue(bytes)}; see fromTypedArray().`);
  }
  const size = sizeOf(shape);
  if (bytes.byteLength !== size * byteSize(dtype)) {
    throw new ShapeError(
      `fromBytes: ${bytes.byteLength} bytes do not fill ${formatShape(shape)} of ${dtype}.`,
    );
  }
  const isAligned = bytes.byteOffset % byteSize(dtype) === 0 && bytes.buffer instanceof ArrayBuffer;
  // Not slice(), which returns a view of the same memory for a Node Buffer.
  const aligned = (isAligned ? bytes : new Uint8Array(bytes)) as Uint8Array<ArrayBuffer>;
  const elements = viewAs(dtype, aligned.buffer, aligned.byteOffset, size);
  return fromElements('fromBytes', normalized(dtype, elements), shape, dtype, known);
}

/** Makes each bool 0 or 1: a true of another byte would not equal one made by an op. */
function normalized(dtype: DType, data: TypedArray): TypedArray {
  return dtype === 'bool' ? (data as Uint8Array).map((byte) => Number(byte !== 0)) : data;
}

/** `fromTypedArray` without checks, for a function `owner`. */
export function fromElements(
  owner: string,
  data: TypedArray,
  shape: Shape,
  dtype: DType,
  options: TensorOptions,
): Tensor {
  return scope(() => {
    const result = allocate(owner, shape, { ...options, dtype });
    if (observers.length > 0) tellHostWrite(result, owner);
    if (data.length > 0) result.device.write(result.storage.buffer, 0, bytesOfArray(data));
    return finished(result, options);
  });
}

function dtypeOf(data: TypedArray): DType {
  if (data instanceof Float32Array) return 'float32';
  if (data instanceof Float64Array) return 'float64';
  if (data instanceof Int32Array) return 'int32';
  if (data instanceof BigInt64Array) return 'int64';
  if (data instanceof Uint8Array) return 'bool';
  if (!(data instanceof Uint16Array)) {
    throw new DTypeError(
      `fromTypedArray: takes a typed array of a dtype's elements, not ${describeValue(data)}; tensor() takes lists.`,
    );
  }
  throw new DTypeError('fromTypedArray: a Uint16Array may be float16 or bfloat16; say which with { dtype }.');
}
