import type { Device } from '../devices/device.ts';
import { type DeviceSpec, device } from '../devices/device-registry.ts';
import type { DType, TypedArray } from './dtype.ts';
import { typedArray } from './dtype.ts';
import { DTypeError, ShapeError } from '../errors.ts';
import { bytesOfArray, fromNumbers } from './host-values.ts';
import { observers, tellHostWrite } from '../op/observers.ts';
import { fillInPlace } from '../ops/copy/in-place.ts';
import { type Shape, checkShape, formatShape, sizeOf } from './shape.ts';
import { Tensor } from './tensor.ts';

export interface TensorOptions {
  /** Default float32. */
  dtype?: DType;
  /** Default cpu. */
  device?: DeviceSpec | Device;
  requiresGrad?: boolean;
}

/** Uninitialised memory as a tensor. */
export function empty(shape: Shape, options: TensorOptions = {}): Tensor {
  checkShape('empty', shape);
  const tensor = Tensor.allocate(device(options.device ?? 'cpu'), options.dtype ?? 'float32', [...shape]);
  return options.requiresGrad ? tensor.requiresGrad_() : tensor;
}

/** A tensor whose every element is `value`. */
export function full(shape: Shape, value: number, options: TensorOptions = {}): Tensor {
  const { requiresGrad = false, ...rest } = options;
  const tensor = empty(shape, rest);
  if (tensor.size > 0) fillInPlace(tensor, value);
  return requiresGrad ? tensor.requiresGrad_() : tensor;
}

export function zeros(shape: Shape, options: TensorOptions = {}): Tensor {
  return full(shape, 0, options);
}

export function ones(shape: Shape, options: TensorOptions = {}): Tensor {
  return full(shape, 1, options);
}

/** Zeros of another tensor's shape, dtype and device. */
export function zerosLike(other: Tensor): Tensor {
  return zeros(other.shape, { dtype: other.dtype, device: other.device });
}

/** Ones of another tensor's shape, dtype and device. */
export function onesLike(other: Tensor): Tensor {
  return ones(other.shape, { dtype: other.dtype, device: other.device });
}

/** start, start + step... below `end`; with one argument 0, 1... below it. int64 when all are whole. */
export function arange(start: number, end?: number, step = 1, options: TensorOptions = {}): Tensor {
  const [first, last] = end === undefined ? [0, start] : [start, end];
  const length = Math.max(0, Math.ceil((last - first) / step));
  if (!Number.isFinite(length)) throw new ShapeError(`arange: ${first} to ${last} by ${step} has no end.`);
  const whole = [first, last, step].every(Number.isInteger);
  const dtype = options.dtype ?? (whole ? 'int64' : 'float32');
  const values = Array.from({ length }, (_, i) => first + i * step);
  return fromTypedArray(fromNumbers(dtype, values), [length], { ...options, dtype });
}

/** Numbers, nested as deep as the tensor has dimensions. */
export type NestedNumbers = number | readonly NestedNumbers[];

/** A tensor of nested arrays of numbers, such as [[1, 2], [3, 4]]. Throws a ShapeError when they are ragged. */
export function tensor(values: NestedNumbers, options: TensorOptions = {}): Tensor {
  const dtype = options.dtype ?? 'float32';
  const shape: number[] = [];
  for (let level = values; typeof level !== 'number'; level = level[0] ?? 0) shape.push(level.length);
  const flat: number[] = [];
  flatten(values, shape, 0, flat);
  return fromTypedArray(fromNumbers(dtype, flat), shape, { ...options, dtype });
}

function flatten(values: NestedNumbers, shape: Shape, depth: number, into: number[]): void {
  const isNumber = typeof values === 'number';
  if (isNumber !== (depth === shape.length) || (!isNumber && values.length !== shape[depth])) {
    throw new ShapeError(
      `tensor: the nested arrays are ragged; the first elements say ${formatShape(shape)}.`,
    );
  }
  if (isNumber) into.push(values);
  else for (const value of values) flatten(value, shape, depth + 1, into);
}

/**
 * A tensor with the elements of a typed array, copied. The dtype is the array's own unless given: float16 and
 * bfloat16 are given as raw bits in a Uint16Array, bool as bytes. Throws a ShapeError or DTypeError.
 */
export function fromTypedArray(data: TypedArray, shape: Shape, options: TensorOptions = {}): Tensor {
  const dtype = options.dtype ?? dtypeOf(data);
  if (data.constructor !== typedArray(dtype, 0).constructor) {
    throw new DTypeError(
      `fromTypedArray: ${dtype} elements come in a ${typedArray(dtype, 0).constructor.name}, not a ${data.constructor.name}.`,
    );
  }
  if (data.length !== sizeOf(shape)) {
    throw new ShapeError(`fromTypedArray: ${data.length} elements do not fill ${formatShape(shape)}.`);
  }
  const result = empty(shape, { ...options, dtype });
  if (observers.length > 0) tellHostWrite(result);
  if (data.length > 0) result.device.write(result.storage.buffer, 0, bytesOfArray(data));
  return result;
}

function dtypeOf(data: TypedArray): DType {
  if (data instanceof Float32Array) return 'float32';
  if (data instanceof Float64Array) return 'float64';
  if (data instanceof Int32Array) return 'int32';
  if (data instanceof BigInt64Array) return 'int64';
  if (data instanceof Uint8Array) return 'bool';
  throw new DTypeError('fromTypedArray: a Uint16Array may be float16 or bfloat16; say which with { dtype }.');
}
