import { describeValue, refuseAsync, refusePromise } from '@roofline/cuda/host';
import { type DType, byteSize, isFloatingPoint } from '../../base/dtype.ts';
import { DTypeError } from '../../base/errors.ts';
import type { AutocastClass } from '../op.ts';
import { extentOf } from '../../tensor/storage/extent.ts';
import { Scope } from '../../tensor/lifetime/scope.ts';
import { Tensor } from '../../tensor/tensor.ts';
import type { Region } from '../../tensor/storage/write-versions.ts';

/** The dtypes that `autocast` can lower to. */
export type AutocastDType = 'float16' | 'bfloat16';

/** Makes a contiguous tensor of the same values in another dtype, without recording it. */
export type Convert = (x: Tensor, dtype: DType) => Tensor;

/** A parameter's elements in a lower dtype. */
interface ParameterCast {
  /** The storage's version when the elements were cast. */
  readonly version: number;
  readonly elements: Tensor;
}

/** The casts of the parameters that one outermost region of autocast has used. */
class ParameterCasts {
  /** A leaf's region is the same object as long as the leaf exists. */
  readonly #casts = new Map<Region, ParameterCast>();
  // Not the caller's scope: a parameter may first be used in one that ends long before the region.
  readonly #owner = new Scope(null);

  /** `x`, a view of the parameter at `region` of its storage, as the same view of the parameter in `dtype`. */
  get(x: Tensor, region: Region, dtype: DType, convert: Convert): Tensor {
    const { storage, shape, strides, offset } = x;
    let cast = this.#casts.get(region);
    if (!cast || cast.elements.dtype !== dtype || storage.writtenSince(cast.version, region)) {
      cast?.elements.dispose();
      cast = { version: storage.version, elements: this.#make(x, region, dtype, convert) };
      this.#casts.set(region, cast);
    }
    const start = region.start / byteSize(x.dtype);
    return new Tensor(cast.elements.storage.retain(), dtype, shape, strides, offset - start);
  }

  #make(x: Tensor, region: Region, lower: DType, convert: Convert): Tensor {
    const { storage, dtype } = x;
    const size = (region.end - region.start) / byteSize(dtype);
    if (x.isContiguous && x.size === size) return this.#kept(convert(x, lower));
    const whole = new Tensor(storage.retain(), dtype, [size], [1], region.start / byteSize(dtype));
    try {
      return this.#kept(convert(whole, lower));
    } finally {
      whole.dispose();
    }
  }

  #kept(elements: Tensor): Tensor {
    elements.moveTo(this.#owner);
    return elements;
  }

  dispose(): void {
    this.#owner.dispose();
    this.#casts.clear();
  }
}

let current: AutocastDType | null = null;
let casts: ParameterCasts | null = null;

/** The dtype that the running `autocast` lowers to; null outside of one. */
export function autocastDType(): AutocastDType | null {
  return current;
}

/**
 * Runs `fn` in mixed precision (Micikevicius et al. 2018): each op gets its floating-point inputs by its autocast class, as by
 * torch.autocast on CUDA. Matrix products take `dtype`; softmax, layerNorm, sum, mean, exp, log and pow float32; the rest
 * takes what it gets, and where dtypes differ, the wider one. float64 is left alone. Parameters and their gradients keep their
 * dtype; float16 also needs a loss scale, see
 * @roofline/optim's GradientScaler.
 *
 * A parameter is cast once in the outermost region, or again after it was written; the casts are freed when the region ends,
 * except those that the tape has saved, which the backward pass frees as it goes. Call backward after the region or inside it:
 * it runs in the dtypes of the forward pass. Throws a DTypeError for other dtypes, a RooflineError for an async function.
 *
 * @example
 * ```ts
 * import { autocast, matmul, randn } from '@roofline/tensor-core';
 *
 * const [a, b] = [randn([4, 8]), randn([8, 2])];
 * console.log(autocast('bfloat16', () => matmul(a, b)).dtype); // bfloat16
 * ```
 */
export function autocast<T>(dtype: AutocastDType, fn: () => T): T {
  if (dtype !== 'float16' && dtype !== 'bfloat16') {
    throw new DTypeError(`autocast: lowers to float16 or bfloat16, not ${describeValue(dtype)}.`);
  }
  refuseAsync('autocast', fn);
  const outermost = casts === null;
  casts ??= new ParameterCasts();
  try {
    return refusePromise('autocast', inMode(dtype, fn));
  } finally {
    if (outermost) {
      casts.dispose();
      casts = null;
    }
  }
}

/** Runs `fn` in its inputs' own dtypes, also inside `autocast`. */
export function withoutAutocast<T>(fn: () => T): T {
  refuseAsync('withoutAutocast', fn);
  return refusePromise('withoutAutocast', current === null ? fn() : inMode(null, fn));
}

/** Runs `fn` with casts of parameters of its own, also inside `autocast`, whose casts have another owner. */
export function withOwnCasts<T>(fn: () => T): T {
  if (casts === null) return fn();
  const before = casts;
  casts = new ParameterCasts();
  try {
    return fn();
  } finally {
    casts.dispose();
    casts = before;
  }
}

function inMode<T>(mode: AutocastDType | null, fn: () => T): T {
  const before = current;
  current = mode;
  try {
    return fn();
  } finally {
    current = before;
  }
}

/**
 * What an op of class `autocastClass` works on: `inputs` itself if nothing is cast, otherwise a list with new handles, the
 * caller's to dispose of, in place of those that are cast.
 */
export function autocastOperands(
  autocastClass: AutocastClass,
  inputs: readonly Tensor[],
  convert: Convert,
): readonly Tensor[] {
  if (current === null || (autocastClass !== 'lower' && autocastClass !== 'float32')) return inputs;
  const dtype = autocastClass === 'lower' ? current : 'float32';
  let operands: Tensor[] | null = null;
  try {
    for (let i = 0; i < inputs.length; i++) {
      const input = inputs[i]!;
      if (input.dtype === dtype || input.dtype === 'float64' || !isFloatingPoint(input.dtype)) continue;
      operands ??= [...inputs];
      operands[i] = lowered(input, dtype, convert);
    }
  } catch (error) {
    if (operands) disposeCasts(inputs, operands);
    throw error;
  }
  return operands ?? inputs;
}

/** Disposes of the operands that `autocastOperands` made. The tape has saved what the backward pass needs of them. */
export function disposeCasts(inputs: readonly Tensor[], operands: readonly Tensor[]): void {
  for (let i = 0; i < operands.length; i++) if (operands[i] !== inputs[i]) operands[i]!.dispose();
}

/** A parameter is cast as a whole, once per region; anything else by itself. */
function lowered(input: Tensor, dtype: DType, convert: Convert): Tensor {
  const { storage } = input;
  const region = storage.holdsParameters ? storage.parameterAround(extentOf(input)) : null;
  return region ? casts!.get(input, region, dtype, convert) : convert(input, dtype);
}
