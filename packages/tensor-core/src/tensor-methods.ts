import { type BackwardOptions, backward } from './autograd/backward.ts';
import type { Device } from './tensor/device.ts';
import { type DeviceSpec, deviceOf } from './backends/device-registry.ts';
import { type DType, type TypedArray, dtypes } from './base/dtype.ts';
import type { NestedNumbers } from './ops/creation/from-values.ts';
import { cast } from './ops/copy/cast.ts';
import { toDevice } from './ops/copy/to-device.ts';
import { labelTensor, printTensor } from './ops/printing/print-tensor.ts';
import { add, div, maximum, minimum, mul, neg, sub } from './ops/elementwise/arithmetic.ts';
import { abs } from './ops/elementwise/abs.ts';
import { clamp } from './ops/elementwise/clamp.ts';
import { equal, greater, greaterEqual, less, lessEqual } from './ops/elementwise/comparisons.ts';
import { gelu } from './ops/elementwise/gelu.ts';
import { cos, exp, log, relu, rsqrt, sigmoid, silu, sin, sqrt, tanh } from './ops/elementwise/math.ts';
import { pow } from './ops/elementwise/pow.ts';
import { contiguous, copy } from './ops/copy/contiguous.ts';
import { matmul } from './ops/matrix/matmul.ts';
import { logSoftmax } from './ops/nn/log-softmax.ts';
import { softmax } from './ops/nn/softmax.ts';
import { argmax, argmin } from './ops/reduce/arg-extremum.ts';
import { cumsum } from './ops/reduce/cumsum.ts';
import { max, mean, min, sum } from './ops/reduce/reductions.ts';
import { flatten } from './ops/shape/flatten.ts';
import {
  expand,
  permute,
  reshape,
  select,
  slice,
  squeeze,
  transpose,
  unsqueeze,
  view,
} from './ops/shape/views.ts';
import { Tensor } from './tensor/tensor.ts';
import { item, toArray, toFlatArray, toTypedArray } from './ops/transfer.ts';

/** `util.inspect.custom`, without importing Node's util. */
const inspectCustom = Symbol.for('nodejs.util.inspect.custom');

/** Ops that are methods too, so that a calculation reads from left to right: `x.mul(y).sum()`. */
export const opMethods = {
  ...{ add, sub, mul, div, neg, pow, maximum, minimum },
  ...{ abs, clamp, cos, exp, gelu, log, relu, rsqrt, sigmoid, silu, sin, sqrt, tanh },
  ...{ equal, greater, greaterEqual, less, lessEqual },
  ...{ sum, mean, max, min, argmax, argmin, cumsum, softmax, logSoftmax },
  ...{ matmul, reshape, view, permute, transpose, expand, squeeze, unsqueeze, flatten, select, slice },
  ...{ contiguous, copy },
};

/** An op as a method of its first operand. */
type Method<Op> = Op extends (x: Tensor, ...rest: infer Rest) => infer Result
  ? (...rest: Rest) => Result
  : never;
type OpMethods = { readonly [Name in keyof typeof opMethods]: Method<(typeof opMethods)[Name]> };

// Methods that stand on ops and devices are added here, so that the class itself depends on neither.
declare module './tensor/tensor.ts' {
  interface Tensor extends OpMethods {
    /** See `backward`. */
    backward(gradient?: Tensor, options?: BackwardOptions): void;
    /** The same elements without history: another handle to the same storage. */
    detach(): Tensor;
    /** The elements in row-major order; float16 and bfloat16 as raw bits. Waits for the device. */
    toTypedArray(): TypedArray;
    /** The elements in row-major order as numbers. Waits for the device. */
    toFlatArray(): number[];
    /** The elements as numbers, nested as deep as there are dimensions: a number for none. Waits for the device. */
    toArray(): NestedNumbers;
    /** The value of a tensor of one element. Waits for the device. */
    item(): number;
    /** Its values abbreviated as NumPy does, shape, dtype and device; what `console.log` prints. Waits for the device. */
    toString(): string;
    /** The same values as another dtype, or on another device. */
    to(target: DType | DeviceSpec | Device): Tensor;
  }
}

for (const [name, op] of Object.entries(opMethods)) {
  Object.defineProperty(Tensor.prototype, name, {
    value(this: Tensor, ...rest: unknown[]): unknown {
      return (op as (x: Tensor, ...rest: unknown[]) => unknown)(this, ...rest);
    },
    writable: true,
    configurable: true,
  });
}

Tensor.prototype.backward = function (gradient, options) {
  backward(this, gradient, options);
};

Tensor.prototype.detach = function () {
  this.assertAlive('detach');
  return new Tensor(this.storage.retain(), this.dtype, this.shape, this.strides, this.offset);
};

Tensor.prototype.toTypedArray = function () {
  return toTypedArray(this);
};

Tensor.prototype.toFlatArray = function () {
  return toFlatArray(this);
};

Tensor.prototype.toArray = function () {
  return toArray(this);
};

Tensor.prototype.item = function () {
  return item(this);
};

Tensor.prototype.toString = function () {
  return printTensor(this);
};

Object.defineProperty(Tensor.prototype, inspectCustom, {
  value(this: Tensor, depth: number): string {
    return depth < 0 ? labelTensor(this) : printTensor(this);
  },
});

Tensor.prototype.to = function (target) {
  return isDType(target) ? cast(this, target) : toDevice(this, deviceOf('to', target));
};

function isDType(target: DType | DeviceSpec | Device): target is DType {
  return dtypes.includes(target as DType);
}
