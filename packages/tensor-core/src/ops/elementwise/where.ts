import { refuseMore } from '../../op/require-tensor.ts';
import { describeValue } from '@roofline/cuda/host';
import type { TensorSpec } from '../../base/memory-view.ts';
import { applyOne } from '../../op/apply.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import { gather } from '../../op/strided-copy.ts';
import {
  type DType,
  type TypedArray,
  checkFilling,
  promoteWithNumber,
  resultType,
  typedArray,
} from '../../base/dtype.ts';
import { fromNumbers } from '../../tensor/host-values.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { DTypeError } from '../../base/errors.ts';
import { defineOp } from '../../op/op.ts';
import {
  type Shape,
  broadcastShapes,
  broadcastStrides,
  contiguousStrides,
  sameShape,
  sizeOf,
} from '../../base/shape.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import type { Operand } from '../support/pointwise.ts';

interface WhereAttributes {
  /** The alternatives that are numbers; the others are inputs, in order, after the condition. */
  readonly numbers: readonly [number | undefined, number | undefined];
}

function shapeOf(inputs: readonly TensorSpec[]) {
  return inputs.reduce((shape, input) => broadcastShapes('where', shape, input.shape), inputs[0]!.shape);
}

function dtypeOf([, first, second]: readonly TensorSpec[], { numbers }: WhereAttributes): DType {
  if (second) return resultType(first!, second);
  return promoteWithNumber(first!.dtype, numbers[0] ?? numbers[1]!);
}

/** The names of the two alternatives in a kernel. */
function names({ numbers }: WhereAttributes): [string, string] {
  let [input, scalar] = [0, 0];
  const name = (value: number | undefined) => (value === undefined ? 'bc'[input++]! : `s${scalar++}`);
  return [name(numbers[0]), name(numbers[1])];
}

const whereOp = defineOp<WhereAttributes>({
  name: 'where',
  autocast: 'promote',
  infer: (inputs, attributes) => [{ shape: shapeOf(inputs), dtype: dtypeOf(inputs, attributes) }],
  saves: () => ({ inputs: [0] }),
  gradient: ({ gradients, input, needs, attributes: { numbers } }) => {
    const condition = input(0);
    const g = gradients[0]!;
    const sides = [() => where(condition, g, 0), () => where(condition, 0, g)];
    const wanted = sides.filter((_, side) => numbers[side] === undefined);
    return [null, ...wanted.map((rule, i) => (needs[i + 1] ? rule() : null))];
  },
  scalars: ({ numbers }) => numbers.filter((value) => value !== undefined),
  variant: (attributes) => names(attributes).join(),
  cuda: {
    kind: 'pointwise',
    expressions: (attributes) => {
      const [yes, no] = names(attributes);
      return [`a != 0 ? ${yes} : ${no}`];
    },
  },
  cpu: { kind: 'host', run: choose },
});

/**
 * Moves bits, so that -0 stays -0: ONNX Runtime's Where adds both sides, each with 0 where the other is chosen. The tensors
 * have one dtype.
 */
function choose(
  [condition, ...inputs]: readonly HostArray[],
  [y]: readonly HostArray[],
  { numbers }: WhereAttributes,
): void {
  const { shape, dtype, data } = y!;
  let input = 0;
  const [yes, no] = numbers.map((value) =>
    value === undefined
      ? wordsOf(broadcast(inputs[input++]!, shape))
      : wordsOf(broadcast({ shape: [], dtype, data: fromNumbers(dtype, [value]) }, shape)),
  );
  chooseWords(broadcast(condition!, shape) as Uint8Array, yes!, no!, wordsOf(data));
}

/** The elements of `x` repeated to `shape`. */
function broadcast({ shape: own, dtype, data }: HostArray, shape: Shape): TypedArray {
  if (sameShape(own, shape)) return data;
  const repeated = typedArray(dtype, sizeOf(shape));
  if (data.length === 1) return repeated.fill(data[0] as never);
  const strides = broadcastStrides(own, contiguousStrides(own), shape);
  gather(data, { shape, strides, offset: 0 }, repeated);
  return repeated;
}

type Words = Uint8Array | Uint16Array | Int32Array;

/** Elements as integers of the same bits; 8-byte elements as two. */
function wordsOf(data: TypedArray): Words {
  if (data instanceof Uint8Array || data instanceof Uint16Array || data instanceof Int32Array) return data;
  return new Int32Array(data.buffer, data.byteOffset, data.byteLength / Int32Array.BYTES_PER_ELEMENT);
}

// Without branches, which a processor would mispredict half of the time.
function chooseWords(condition: Uint8Array, yes: Words, no: Words, y: Words): void {
  const shift = y.length > condition.length ? 1 : 0;
  for (let i = 0; i < y.length; i++) y[i] = no[i]! ^ ((no[i]! ^ yes[i]!) & -condition[i >> shift]!);
}

/**
 * `a` where the bool `condition` is true, otherwise `b`, with broadcasting; at least one of them must be a tensor. The dtype
 * is that of a binary op on a and b. Throws a DTypeError or ShapeError.
 */
export function where(condition: Tensor, a: Operand, b: Operand, ...rest: []): Tensor {
  refuseMore('where', rest);
  if (!(condition instanceof Tensor) || condition.dtype !== 'bool') {
    const given = condition instanceof Tensor ? condition.dtype : describeValue(condition);
    throw new DTypeError(`where: the condition must be bool, not ${given}; compare it with something.`);
  }
  const sides = [a, b];
  const tensors = sides.filter((side): side is Tensor => side instanceof Tensor);
  const numbers = sides.map((side) => (typeof side === 'number' ? side : undefined));
  sides.forEach((side, i) => {
    if (!(side instanceof Tensor) && numbers[i] === undefined) {
      throw new DTypeError(`where: takes tensors and numbers, not ${describeValue(side)}.`);
    }
  });
  if (tensors.length === 0) {
    throw new DTypeError(
      `where: one alternative must be a tensor, got the numbers ${String(a)} and ${String(b)}; use full().`,
    );
  }
  const number = numbers.find((value) => value !== undefined);
  if (number !== undefined) checkFilling('where', promoteWithNumber(tensors[0]!.dtype, number), number);
  const attributes = { numbers: numbers as [number | undefined, number | undefined] };
  const dtype = dtypeOf([condition, ...tensors], attributes);
  if (tensors.every((tensor) => tensor.dtype === dtype)) {
    return applyOne(whereOp, [condition, ...tensors], attributes);
  }
  return scope(() =>
    applyOne(whereOp, [condition, ...tensors.map((tensor) => cast(tensor, dtype))], attributes),
  );
}
