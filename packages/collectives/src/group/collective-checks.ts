import {
  DTypeError,
  RooflineError,
  ShapeError,
  type Tensor,
  checkOptions,
  describeValue,
  formatShape,
  isFloatingPoint,
} from '@roofline/tensor-core';
import { sameShape } from '@roofline/tensor-core/kernel-api';
import type { Backend, Reduction } from './backend.ts';
import { checkReduction } from './check-call.ts';
import type { Members } from './describe-call.ts';
import { checkOperand, checkOverlap, checkTarget } from './operands.ts';

/** How values are reduced, and where the result goes. */
export interface ReduceOptions {
  /** Default 'sum'. An 'average' is the sum over the number of ranks, of floating-point tensors alone. */
  readonly op?: Reduction;
  /** Where the result goes. Default: in place. */
  readonly output?: Tensor;
  /**
   * What all ranks must give alike besides the op and the shape, such as 'step 3', in a few words: errors say who gave
   * what. Without `checkCalls`, NCCL compares it through the store with that of the rank that came first, and nothing
   * waits for that.
   */
  readonly context?: string;
}

/** What the collectives of one group ask of their tensors and ranks; each check names `op`. */
export class CollectiveChecks {
  readonly #members: Members;
  readonly #backend: Backend;
  readonly #size: number;

  constructor(members: Members, backend: Backend) {
    this.#members = members;
    this.#backend = backend;
    this.#size = members.ranks.length;
  }

  /** What `allReduce` and `reduce` take. */
  reduceOperands(
    op: string,
    x: Tensor,
    options: ReduceOptions,
  ): { reduction: Reduction; output: Tensor; context: string[] } {
    checkOptions(op, options, ['op', 'output', 'context']);
    checkOperand(op, x, this.#backend);
    const output = options.output === undefined ? x : options.output;
    checkTarget(op, output, this.#backend);
    checkAlike(op, output, x);
    if (output !== x) checkOverlap(op, output, x, 0);
    const reduction = reductionOf(op, options.op, x);
    return { reduction, output, context: contextOf(op, options.context) };
  }

  /** Throws unless `whole` holds a piece like `piece` for each rank. */
  checkPieces(op: string, whole: Tensor, piece: Tensor, name: 'input' | 'output'): void {
    checkOperand(op, whole, this.#backend);
    checkOperand(op, piece, this.#backend);
    if (whole.dtype !== piece.dtype)
      throw new DTypeError(
        `${op}: input and output must have one dtype, not ${whole.dtype} and ${piece.dtype}.`,
      );
    const shapes = [[this.#size, ...piece.shape]];
    if (piece.rank > 0) shapes.push([piece.shape[0]! * this.#size, ...piece.shape.slice(1)]);
    if (shapes.some((shape) => sameShape(shape, whole.shape))) return;
    throw new ShapeError(
      `${op}: for ${formatShape(piece.shape)} the ${name} must be ${shapes.map(formatShape).join(' or ')}, a piece ` +
        `for each of ${this.#size} ranks, not ${formatShape(whole.shape)}.`,
    );
  }

  /** Throws unless the root, and no other rank, gives the tensor that it alone has. */
  checkRootsTensor(op: string, name: 'input' | 'output', x: Tensor | null, root: number): void {
    if (this.#members.rank === root) {
      if (x === null)
        throw new ShapeError(
          `${op}: rank ${this.#members.rank} is the root and needs the ${name}, not null.`,
        );
    } else if (x !== null)
      throw new ShapeError(
        `${op}: only the root, rank ${root}, has an ${name}; give null on rank ${this.#members.rank}.`,
      );
  }
}

/** How values of the dtype of `x` are reduced. */
export function reductionOf(op: string, reduction: Reduction = 'sum', x: Tensor): Reduction {
  checkReduction(op, reduction);
  if (reduction === 'average' && !isFloatingPoint(x.dtype))
    throw new DTypeError(`${op}: an average of ${x.dtype} would round; cast() it, or take the sum.`);
  return reduction;
}

function contextOf(op: string, context: string | undefined): string[] {
  if (context === undefined) return [];
  if (typeof context === 'string' && context !== '') return [context];
  throw new RooflineError(
    'ARGUMENT',
    `${op}: the context is a text that all ranks give alike, not ${describeValue(context)}.`,
  );
}

/** Throws unless both have one dtype and one shape. */
export function checkAlike(op: string, output: Tensor, input: Tensor): void {
  if (output.dtype !== input.dtype)
    throw new DTypeError(
      `${op}: input and output must have one dtype, not ${input.dtype} and ${output.dtype}.`,
    );
  if (sameShape(output.shape, input.shape)) return;
  throw new ShapeError(
    `${op}: input and output must have one shape, not ${formatShape(input.shape)} and ${formatShape(output.shape)}.`,
  );
}
