import {
  ShapeError,
  type Shape,
  type Tensor,
  checkOptions,
  formatShape,
  mul,
  sizeOf,
} from '@roofline/tensor-core';
import { reductionOf } from '../group/collective-checks.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import type { ReductionOptions } from './all-reduce.ts';
import { applyCollective, checkDifferentiable, checkInput, defineCollective } from './collective-op.ts';

const allGatherOp = defineCollective({
  name: 'allGather',
  infer: ({ shape, dtype }, { group }) => ({ shape: wholeOf(shape, group.size), dtype }),
  terms: (x) => ({ kind: 'allGather', like: x, count: sizeOf(x.shape) }),
  linkShare: (size) => (size - 1) / size,
  // All ranks' outputs hold this rank's piece.
  gradient: (g, { group }) => applyCollective(reduceScatterOp, g, { group, reduction: 'sum' }),
});

const reduceScatterOp = defineCollective({
  name: 'reduceScatter',
  infer: ({ shape, dtype }, { group }) => ({ shape: pieceOf(shape, group.size), dtype }),
  terms: (_, y, { reduction = 'sum' }) => ({
    kind: 'reduceScatter',
    reduction,
    details: [reduction],
    like: y,
    count: sizeOf(y.shape),
  }),
  linkShare: (size) => (size - 1) / size,
  gradient(g, { group, reduction }) {
    const whole = applyCollective(allGatherOp, g, { group });
    return reduction === 'average' ? mul(whole, 1 / group.size) : whole;
  },
});

/**
 * All ranks' `x`, one after the other along the first dimension, on all ranks: [n, ...] becomes [ranks · n, ...], a scalar [ranks].
 * The gradient is `reduceScatter`. The first reader of the result waits for it. Throws a DeviceError, a DTypeError, and a
 * CollectiveError where the call fails, which its reader gets.
 */
export function allGather(x: Tensor, group: ProcessGroup): Tensor {
  checkInput('allGather', x, group);
  return applyCollective(allGatherOp, x, { group });
}

/**
 * The reduction of all ranks' `x`, of which each gets its piece along the first dimension: [ranks · n, ...] becomes [n, ...]. The
 * gradient, of a 'sum' or an 'average' alone, is `allGather`. The first reader of the result waits for it. Throws a ShapeError
 * where there is no equal piece for each rank, a DeviceError, a DTypeError, an AutogradError for a gradient of another
 * reduction, and a CollectiveError where the call fails, which its reader gets.
 */
export function reduceScatter(x: Tensor, group: ProcessGroup, options: ReductionOptions = {}): Tensor {
  checkInput('reduceScatter', x, group);
  checkOptions('reduceScatter', options, ['op']);
  checkPieces('reduceScatter', x.shape, group.size);
  const reduction = reductionOf('reduceScatter', options.op, x);
  checkDifferentiable('reduceScatter', x, reduction);
  return applyCollective(reduceScatterOp, x, { group, reduction });
}

/** Throws a ShapeError unless a first dimension has as many equal pieces as there are ranks. */
export function checkPieces(op: string, shape: Shape, size: number): void {
  if (shape.length > 0 && shape[0]! % size === 0) return;
  throw new ShapeError(
    `${op}: the first dimension of ${formatShape(shape)} must be a multiple of the group's size ${size}: each rank gets a piece.`,
  );
}

function wholeOf([first = 1, ...rest]: Shape, size: number): Shape {
  return [first * size, ...rest];
}

function pieceOf([first, ...rest]: Shape, size: number): Shape {
  return [first! / size, ...rest];
}
