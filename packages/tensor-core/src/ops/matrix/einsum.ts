import { checkText } from '@roofline/cuda/host';
import { requireTensors } from '../../op/require-tensor.ts';
import { autocastDType } from '../../op/autocast/autocast.ts';
import { ShapeError } from '../../base/errors.ts';
import { isFloatingPoint } from '../../base/dtype.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { formatShape, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { cast } from '../copy/cast.ts';
import { mul } from '../elementwise/arithmetic.ts';
import { sum } from '../reduce/reductions.ts';
import { expand, permute, reshape } from '../shape/views.ts';
import { parseEinsum } from './einsum-equation.ts';
import { matmul } from './matmul.ts';

/** A tensor whose dimensions have names. */
interface Indexed {
  readonly tensor: Tensor;
  readonly indices: readonly string[];
}

type Lengths = ReadonlyMap<string, number>;

/**
 * Einstein summation, as torch.einsum: `einsum('bhqd,bhkd->bhqk', q, k)`. Letters name dimensions; those that the result does
 * not name are summed. Without `->` the result has the letters that occur once, in alphabetical order. An ellipsis stands for
 * dimensions that are broadcast. Several operands are multiplied from left to right, by `matmul` if they share an index that
 * is summed, otherwise by `mul`. Throws a RooflineError (code EQUATION) for an invalid equation or an index that occurs twice
 * in one operand (diagonals are not supported), and a ShapeError.
 */
export function einsum(equation: string, ...operands: Tensor[]): Tensor {
  checkText('einsum', 'the equation', equation);
  requireTensors('einsum', operands);
  return scope(() => {
    const { operands: indices, output } = parseEinsum(
      equation,
      operands.map(({ shape }) => shape),
    );
    const terms = operands.map((tensor, i) => ({ tensor, indices: indices[i]! }));
    const lengths = lengthsOf(equation, terms);
    const product = terms.reduce((left, right, i) => {
      const later = new Set([...output, ...indices.slice(i + 1).flat()]);
      return contract(left, right, later, lengths);
    });
    const summed = sumOver(product, (index) => !output.includes(index));
    const result = inAutocastDType(arrange(summed, output));
    return expand(
      result,
      output.map((index) => lengths.get(index)!),
    );
  });
}

/** In the dtype that a product has under autocast, even if the equation needs no product. */
function inAutocastDType(x: Tensor): Tensor {
  const dtype = autocastDType();
  return dtype === null || x.dtype === 'float64' || !isFloatingPoint(x.dtype) ? x : cast(x, dtype);
}

/** The length of each index; a length of one is broadcast. */
function lengthsOf(equation: string, terms: readonly Indexed[]): Lengths {
  const lengths = new Map<string, number>();
  for (const { tensor, indices } of terms) {
    indices.forEach((index, dimension) => {
      const length = tensor.shape[dimension]!;
      const known = lengths.get(index) ?? 1;
      if (known !== 1 && length !== 1 && known !== length) {
        throw new ShapeError(
          `einsum: "${equation}": the index ${index} has length ${known} and, in an operand ` +
            `${formatShape(tensor.shape)}, ${length}.`,
        );
      }
      lengths.set(index, known === 1 ? length : known);
    });
  }
  return lengths;
}

/** The product of two terms, with those of their indices that are needed `later`. */
function contract(left: Indexed, right: Indexed, later: ReadonlySet<string>, lengths: Lengths): Indexed {
  const isLeft = (index: string) => left.indices.includes(index);
  const isRight = (index: string) => right.indices.includes(index);
  // An index of only one of them that is not needed later is summed before the product.
  const a = sumOver(left, (index) => !later.has(index) && !isRight(index));
  const b = sumOver(right, (index) => !later.has(index) && !isLeft(index));
  const shared = a.indices.filter(isRight);
  const contracted = shared.filter((index) => !later.has(index));
  const batch = shared.filter((index) => later.has(index));
  const rows = a.indices.filter((index) => !isRight(index));
  const columns = b.indices.filter((index) => !isLeft(index));
  const indices = [...batch, ...rows, ...columns];
  if (contracted.length === 0) {
    return { tensor: mul(aligned(a, indices), aligned(b, indices)), indices };
  }
  const sizes = (list: readonly string[]) => list.map((index) => lengths.get(index)!);
  const matrices = (term: Indexed, first: readonly string[], second: readonly string[]) => {
    const order = [...batch, ...first, ...second];
    return reshape(expand(arrange(term, order), sizes(order)), [
      ...sizes(batch),
      sizeOf(sizes(first)),
      sizeOf(sizes(second)),
    ]);
  };
  const product = matmul(matrices(a, rows, contracted), matrices(b, contracted, columns));
  return { tensor: reshape(product, sizes(indices)), indices };
}

function sumOver({ tensor, indices }: Indexed, isSummed: (index: string) => boolean): Indexed {
  const dims = indices.flatMap((index, dimension) => (isSummed(index) ? [dimension] : []));
  if (dims.length === 0) return { tensor, indices };
  return { tensor: sum(tensor, { dims }), indices: indices.filter((index) => !isSummed(index)) };
}

/** The dimensions in the order of `order`, which has the same ones. */
function arrange({ tensor, indices }: Indexed, order: readonly string[]): Tensor {
  return permute(
    tensor,
    order.map((index) => indices.indexOf(index)),
  );
}

/** The term, with dimensions of length one for those of `order` that it lacks. */
function aligned(term: Indexed, order: readonly string[]): Tensor {
  const own = order.filter((index) => term.indices.includes(index));
  const arranged = arrange(term, own);
  return reshape(
    arranged,
    order.map((index) => {
      const dimension = own.indexOf(index);
      return dimension < 0 ? 1 : arranged.shape[dimension]!;
    }),
  );
}
