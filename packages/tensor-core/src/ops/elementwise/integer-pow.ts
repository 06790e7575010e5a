import { applyOne } from '../../op/apply.ts';
import { DTypeError } from '../../base/errors.ts';
import { defineOp } from '../../op/op.ts';
import { type TypedArray, checkElement, promoteWithNumber, resultType } from '../../base/dtype.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { broadcastShapes } from '../../base/shape.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { full } from '../creation/from-values.ts';
import { cast } from '../copy/cast.ts';
import { expand } from '../shape/views.ts';
import type { Operand } from '../support/pointwise.ts';

/** Takes two integer tensors of one dtype and shape. ONNX Runtime would calculate in float64, exact only to 2^53. */
const integerPowOp = defineOp({
  name: 'integerPow',
  autocast: 'none',
  infer: ([a]) => [{ shape: a!.shape, dtype: a!.dtype }],
  cuda: { kind: 'pointwise', expressions: () => ['power(a, b)'] },
  cpu: {
    kind: 'host',
    run: ([a, b], [output]) => {
      writePowers(output!.data as BigInt64Array | Int32Array, a!.data, b!.data);
    },
  },
});

function writePowers(target: BigInt64Array | Int32Array, bases: TypedArray, exponents: TypedArray): void {
  const bits = 8 * target.BYTES_PER_ELEMENT;
  for (let i = 0; i < target.length; i++) {
    const power = powerModulo(BigInt(bases[i]!), BigInt(exponents[i]!), bits);
    const result = BigInt.asIntN(bits, power);
    if (target instanceof BigInt64Array) target[i] = result;
    else target[i] = Number(result);
  }
}

/** By squaring, modulo 2^bits. A negative exponent gives the truncated quotient: 0 unless the base is 1 or -1. */
function powerModulo(base: bigint, exponent: bigint, bits: number): bigint {
  if (exponent < 0n) return base === 1n ? 1n : base === -1n ? (exponent % 2n === 0n ? 1n : -1n) : 0n;
  let [result, square] = [1n, base];
  for (let rest = exponent; rest > 0n; rest /= 2n) {
    if (rest % 2n === 1n) result = BigInt.asUintN(bits, result * square);
    square = BigInt.asUintN(bits, square * square);
  }
  return result;
}

/** a to the power b of integers, modulo 2^32 or 2^64; see `pow`. At least one of them is a tensor. */
export function integerPow(a: Operand, b: Operand): Tensor {
  if (typeof b === 'number' && b < 0) {
    throw new DTypeError(
      `pow: integers to the negative integer power ${b} are fractions; cast() the base to a floating-point dtype.`,
    );
  }
  return scope(() => {
    const [base, exponent] = [asTensor(a, b), asTensor(b, a)];
    const dtype = resultType(base, exponent);
    if (dtype === 'bool')
      throw new DTypeError('pow: there is no power of two bools; cast() one to a number.');
    const shape = broadcastShapes('pow', base.shape, exponent.shape);
    return applyOne(
      integerPowOp,
      [base, exponent].map((x) => expand(cast(x, dtype), shape)),
      undefined,
    );
  });
}

/** A number as a tensor without dimensions, in the dtype of an op with the other operand. */
function asTensor(x: Operand, other: Operand): Tensor {
  if (typeof x !== 'number') return x;
  if (typeof other === 'number') {
    throw new DTypeError(
      `pow: one operand must be a tensor, got the numbers ${other} and ${x}; make one with full().`,
    );
  }
  const dtype = promoteWithNumber(other.dtype, x);
  checkElement('pow', dtype, x);
  return full([], x, { dtype, device: other.device });
}
