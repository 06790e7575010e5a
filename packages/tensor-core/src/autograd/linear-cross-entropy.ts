import { checkCount, checkOptions } from '@roofline/cuda/host';
import { applyOne } from '../op/apply.ts';
import { autocastDType } from '../op/autocast/autocast.ts';
import { notFollowed } from '../op/kept-results.ts';
import { requireTensor } from '../op/require-tensor.ts';
import { type DType, byteSize, computeDType } from '../base/dtype.ts';
import { AutogradError, ShapeError } from '../base/errors.ts';
import { checkWhole, formatShape } from '../base/shape.ts';
import { cast } from '../ops/copy/cast.ts';
import { addInPlace, copyInPlace } from '../ops/copy/in-place.ts';
import { add, div } from '../ops/elementwise/arithmetic.ts';
import { notEqual } from '../ops/elementwise/logical-not.ts';
import { addmmInPlaceOp } from '../ops/matrix/addmm.ts';
import { type MatmulAttributes, linear, matmulOp } from '../ops/matrix/matmul.ts';
import { checkTargets } from '../ops/nn/cross-entropy.ts';
import { crossEntropyInPlace, scaleInPlace } from '../ops/nn/cross-entropy-in-place.ts';
import { sum } from '../ops/reduce/reductions.ts';
import { slice, transpose } from '../ops/shape/views.ts';
import { unary } from '../ops/support/pointwise.ts';
import { requireFloatingPoint, requireIndices } from '../ops/support/require-dtype.ts';
import { scope } from '../tensor/lifetime/scope.ts';
import { Tensor } from '../tensor/tensor.ts';
import { defineFunction } from './define-function.ts';

/** What a chunk's logits may take: with the workspaces of its products they stay below one GiB. */
const mostChunkBytes = 2 ** 30 - 2 ** 26;
/** A product's tiles are filled by a multiple of so many rows. */
const wholeTiles = 256;

/** Options of `linearCrossEntropy`. */
export interface LinearCrossEntropyOptions {
  /** Rows with this target do not count. Default -100. */
  readonly ignoreIndex?: number;
  /** How many rows have logits at a time. Default: as many as take just below one GiB. */
  readonly chunkRows?: number;
}

/** The largest power of two up to x, 1 for less: multiplying by it changes no digit. */
const powerOfTwo = unary({
  name: 'powerOfTwo',
  expression: 'ldexp(decltype(a)(1), ilogb(a < 1 ? decltype(a)(1) : a))',
  onnx: (graph, a) => {
    const { dtype } = a;
    const clamped = graph.node('Max', [a, graph.scalar(dtype, 1)]);
    const log2 = graph.node('Div', [graph.node('Log', [clamped]), graph.scalar(dtype, Math.LN2)]);
    return graph.node('Pow', [graph.scalar(dtype, 2), graph.node('Floor', [log2])]);
  },
});

function checkOperands(x: Tensor, weight: Tensor, targets: Tensor): void {
  requireFloatingPoint('linearCrossEntropy', 'x', x);
  requireFloatingPoint('linearCrossEntropy', 'the weight', weight);
  requireIndices('linearCrossEntropy', 'targets', targets);
  const fits =
    x.rank === 2 &&
    weight.rank === 2 &&
    targets.rank === 1 &&
    x.shape[1] === weight.shape[1] &&
    x.shape[0] === targets.shape[0];
  if (!fits) {
    throw new ShapeError(
      `linearCrossEntropy: takes x [N, d], a weight [V, d] and targets [N], got ${formatShape(x.shape)}, ` +
        `${formatShape(weight.shape)} and ${formatShape(targets.shape)}; reshape them.`,
    );
  }
  if (x.shape[0] === 0 || weight.shape[0] === 0) {
    throw new ShapeError(
      `linearCrossEntropy: the mean over logits [${x.shape[0]}, ${weight.shape[0]}] without elements has no value.`,
    );
  }
}

/** Rows of a chunk: chunks of about the same size, and whole tiles where there is room for them. */
export function rowsOfChunks(rows: number, bytesOfRow: number): number {
  const fitting = Math.max(1, Math.floor(mostChunkBytes / bytesOfRow));
  if (fitting >= rows) return rows;
  const most = fitting >= wholeTiles ? fitting - (fitting % wholeTiles) : fitting;
  const even = Math.ceil(rows / Math.ceil(rows / most));
  return most >= wholeTiles ? Math.ceil(even / wholeTiles) * wholeTiles : even;
}

/** The dtype that the product is made in, as by `linear`. */
function productDType(x: Tensor): DType {
  const lower = autocastDType();
  return lower === null || x.dtype === 'float64' ? x.dtype : lower;
}

/** A sum of products is float32 where its operands are less. */
function sumDType(dtype: DType): DType {
  return computeDType([dtype], []);
}

/** Gradients of x and of the weight as they grow chunk by chunk; null where one is not wanted. */
class Gradients {
  readonly ofX: Tensor | null;
  /** In the dtype of sums; undefined before the first chunk. */
  ofWeight: Tensor | null | undefined;
  readonly #weight: Tensor;
  readonly #ofXAttributes: MatmulAttributes;

  constructor(x: Tensor, weight: Tensor, dtype: DType, [needsX, needsWeight]: readonly boolean[]) {
    this.#weight = weight;
    // As in the gradient of a product: one that a cast was multiplied for gets its sums unrounded.
    const unrounded = x.dtype === 'float32' && dtype !== 'float32';
    this.#ofXAttributes = unrounded ? { scale: 1, dtype: 'float32' } : { scale: 1 };
    this.ofX = needsX ? Tensor.allocate(x.device, unrounded ? 'float32' : dtype, x.shape) : null;
    this.ofWeight = needsWeight ? undefined : null;
  }

  /** Adds those of rows from `start` on, whose gradient of logits is given. */
  add(dlogits: Tensor, x: Tensor, start: number): void {
    if (this.ofX) {
      const place = slice(this.ofX, 0, start, start + x.shape[0]!);
      const made = applyOne(matmulOp, [dlogits, this.#weight], this.#ofXAttributes, place);
      if (made.storage !== place.storage) copyInPlace(place, made);
    }
    if (this.ofWeight === undefined) this.ofWeight = this.#product(transpose(dlogits), x);
    else if (this.ofWeight) this.#addProduct(this.ofWeight, transpose(dlogits), x);
  }

  #product(a: Tensor, b: Tensor): Tensor {
    const dtype = sumDType(a.dtype);
    return applyOne(matmulOp, [a, b], dtype === a.dtype ? { scale: 1 } : { scale: 1, dtype });
  }

  #addProduct(to: Tensor, a: Tensor, b: Tensor): void {
    if (byteSize(a.dtype) === 2) {
      applyOne(addmmInPlaceOp, [a, b, to], { scale: 1 });
      return;
    }
    // Wide products are not added where they are made: so much of them at a time as the logits take.
    const [classes, features] = to.shape as [number, number];
    const step = Math.max(1, Math.floor((b.shape[0]! * classes) / features));
    for (let from = 0; from < classes; from += step) {
      const end = Math.min(classes, from + step);
      scope(() => addInPlace(slice(to, 0, from, end), this.#product(slice(a, 0, from, end), b)));
    }
  }
}

/**
 * `crossEntropy(linear(x, weight), targets)` without the logits [N, V] as a whole: head and loss are made for some rows at a
 * time, and their part of both gradients at once, while those rows' logits are there. A scalar in float32 (float64 for
 * float64 operands). x: [N, d]; weight: [V, d]; targets: [N], int32 or int64, each in 0..V-1 or `ignoreIndex`, whose rows do not
 * count; NaN if no row counts.
 *
 * It takes less than one GiB besides operands, their casts under autocast, and gradients, where logits and their gradient
 * would take 4·N·V bytes in low precision: use it where those are what fills the memory, or where a step's peak is at the loss. It
 * makes the products that head and loss make by themselves, and none twice. The gradient of a low-precision weight is summed in
 * float32.
 *
 * Gradients are made with the loss, and only multiplied by its gradient in the backward pass: let the loss be the last op, or one
 * that only scales follow. In noGrad none are made. A second backward pass through one call throws an AutogradError. Throws a
 * ShapeError or DTypeError; a target out of range is an error as of `crossEntropy`.
 *
 * @example
 * ```ts
 * import { linearCrossEntropy, randint, randn } from '@roofline/tensor-core';
 *
 * const [x, weight] = [randn([8, 4], { requiresGrad: true }), randn([100, 4], { requiresGrad: true })];
 * const loss = linearCrossEntropy(x, weight, randint(0, 100, [8]), { chunkRows: 2 });
 * loss.backward();
 * console.log(x.grad?.shape, weight.grad?.shape); // [8, 4] [100, 4]
 * ```
 */
export function linearCrossEntropy(
  x: Tensor,
  weight: Tensor,
  targets: Tensor,
  options: LinearCrossEntropyOptions = {},
): Tensor {
  requireTensor('linearCrossEntropy', x);
  requireTensor('linearCrossEntropy', weight);
  requireTensor('linearCrossEntropy', targets);
  checkOptions('linearCrossEntropy', options, ['ignoreIndex', 'chunkRows']);
  const { ignoreIndex = -100 } = options;
  checkWhole('linearCrossEntropy', 'ignoreIndex', ignoreIndex);
  if (options.chunkRows !== undefined) checkCount('linearCrossEntropy', 'chunkRows', options.chunkRows, 1);
  checkOperands(x, weight, targets);
  checkTargets('linearCrossEntropy', targets, weight.shape[0]!, ignoreIndex);
  const dtype = productDType(x);
  const chunkRows = options.chunkRows ?? rowsOfChunks(x.shape[0]!, weight.shape[0]! * byteSize(dtype));
  let isHandedOut = false;
  return defineFunction<Tensor>({
    name: 'linearCrossEntropy',
    forward({ save, needs }) {
      const { loss, gradients, unit } = lossAndGradients(
        { x, weight, targets, needs, dtype },
        ignoreIndex,
        chunkRows,
      );
      save(unit, ...[gradients.ofX, gradients.ofWeight].filter((gradient) => gradient != null));
      return loss;
    },
    backward(context, dloss) {
      if (dloss === null) return [null, null, null];
      if (isHandedOut) throw handedOut();
      isHandedOut = true;
      const [unit, ...gradients] = context.saved as readonly [Tensor, ...Tensor[]];
      const factor = div(dloss, unit);
      for (const gradient of gradients) scaleInPlace(gradient, factor);
      const next = gradients.values();
      const taken = (isNeeded: boolean) => (isNeeded ? next.next().value! : null);
      return [taken(context.needs[0]!), taken(context.needs[1]!), null];
    },
  })(x, weight, targets);
}

function handedOut(): AutogradError {
  return new AutogradError(
    'linearCrossEntropy: its gradients were made with the loss, and an earlier backward pass has handed them out; call it ' +
      'again for another, or use crossEntropy(linear(x, weight), targets).',
  );
}

interface Work {
  readonly x: Tensor;
  readonly weight: Tensor;
  readonly targets: Tensor;
  readonly needs: readonly boolean[];
  readonly dtype: DType;
}

/**
 * The loss, and the gradients times `unit`: a power of two, by which they stay as far from float16's smallest numbers as those of
 * a single row, whatever the number of rows.
 */
function lossAndGradients(
  { x, weight, targets, needs, dtype }: Work,
  ignoreIndex: number,
  chunkRows: number,
): { readonly loss: Tensor; readonly gradients: Gradients; readonly unit: Tensor } {
  const count = sum(cast(notEqual(targets, ignoreIndex), sumDType(dtype)));
  const unit = powerOfTwo(count);
  const scale = div(unit, count);
  const rows = cast(x, dtype);
  // Of a parameter autocast keeps one cast for all chunks, and for others that read it.
  const head = autocastDType() === null || weight.storage.holdsParameters ? weight : cast(weight, dtype);
  const gradients = new Gradients(x, head, dtype, needs);
  let total: Tensor | null = null;
  for (let start = 0; start < x.shape[0]!; start += chunkRows) {
    const end = Math.min(x.shape[0]!, start + chunkRows);
    const before: Tensor | null = total;
    const made = scope((): { readonly total: Tensor; readonly ofWeight?: Tensor | null } => {
      const chunk = slice(rows, 0, start, end);
      const logits = linear(chunk, head);
      const loss = crossEntropyInPlace(logits, slice(targets, 0, start, end), scale, { ignoreIndex });
      // Not made in a checkpoint's first run, which needs none.
      notFollowed(() => gradients.add(logits, chunk, start));
      return { total: before ? add(before, loss) : loss, ofWeight: gradients.ofWeight };
    });
    total = made.total;
  }
  return { loss: div(total!, count), gradients, unit };
}
