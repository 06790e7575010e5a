import type { TensorSpec } from '../../op/memory-view.ts';
import { applyOne } from '../../op/apply.ts';
import {
  type DType,
  checkElement,
  computeDType,
  describeValue,
  promoteWithNumber,
  resultType,
} from '../../tensor/dtype.ts';
import { DTypeError } from '../../errors.ts';
import { defineOp } from '../../op/op.ts';
import { broadcastShapes } from '../../tensor/shape.ts';
import { Tensor } from '../../tensor/tensor.ts';
import type { Operand } from '../support/pointwise.ts';

interface WhereAttributes {
  /** The alternatives that are numbers; the others are inputs, in order, behind the condition. */
  readonly numbers: readonly [number | undefined, number | undefined];
}

function shapeOf(inputs: readonly TensorSpec[]) {
  return inputs.reduce((shape, input) => broadcastShapes('where', shape, input.shape), inputs[0]!.shape);
}

function dtypeOf([, first, second]: readonly TensorSpec[], { numbers }: WhereAttributes): DType {
  if (second) return resultType(first!, second);
  return promoteWithNumber(first!.dtype, numbers[0] ?? numbers[1]!);
}

/** The names that the two alternatives have in a kernel. */
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
  cpu: {
    kind: 'onnx',
    build: (graph, [condition, ...inputs], attributes, { scalars, outputs }) => {
      const computed = computeDType(
        inputs.map((input) => input.dtype),
        [outputs[0]!.dtype],
      );
      // ONNX Runtime chooses among numbers only.
      const dtype = computed === 'bool' ? 'int32' : computed;
      const values = names(attributes).map((name) =>
        graph.cast(name.startsWith('s') ? scalars[Number(name[1])]! : inputs['bc'.indexOf(name)]!, dtype),
      );
      return [graph.node('Where', [condition!, ...values], {}, { shape: outputs[0]!.shape, dtype })];
    },
  },
});

/**
 * `a` where the bool `condition` holds, else `b`, with broadcasting; one of them at least must be a tensor. The dtype
 * is that of a binary op on a and b. Throws a DTypeError or ShapeError.
 */
export function where(condition: Tensor, a: Operand, b: Operand): Tensor {
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
  if (number !== undefined) checkElement('where', promoteWithNumber(tensors[0]!.dtype, number), number);
  return applyOne(whereOp, [condition, ...tensors], {
    numbers: numbers as [number | undefined, number | undefined],
  });
}
