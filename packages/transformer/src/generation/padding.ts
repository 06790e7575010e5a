import {
  type Device,
  RooflineError,
  ShapeError,
  type Tensor,
  arange,
  checkCount,
  concat,
  describeValue,
  full,
  maximum,
  scope,
  sub,
} from '@roofline/tensor-core';

/** How many tokens at the beginning of each sequence only fill a batch up. */
export type Padding = readonly number[];

/** Throws a RooflineError, which names `owner`, unless `padding` is a count for each sequence. */
export function checkPadding(owner: string, padding: Padding): void {
  if (!Array.isArray(padding) || padding.length === 0) {
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: padding must be how many tokens fill up each sequence of the batch, as [2, 0], not ${describeValue(padding)}.`,
    );
  }
  for (const count of padding) checkCount(owner, 'padding', count as number);
}

/** Throws a ShapeError unless as many sequences are filled up as there are in a batch. */
export function checkPaddedBatch(sequences: number, batch: number): void {
  if (sequences === batch) return;
  throw new ShapeError(
    `KeyValueCache: padding of ${sequences} sequences does not fit a batch of ${batch}; give one count for each.`,
  );
}

/** Where each sequence begins, int32 [B, 1]. */
export function startsOf(padding: Padding, device: Device): Tensor {
  // By fills, which compiled functions may do as well.
  return scope(() => concat(padding.map((count) => full([1, 1], count, { dtype: 'int32', device }))));
}

/**
 * The positions of `length` tokens, counted from where each sequence begins, [B, length]; those before it have the first. `position` is
 * that of the batch's first token, or one of a single token in a tensor [1].
 */
export function positionsFrom(starts: Tensor, position: number | Tensor, length: number): Tensor {
  const { device } = starts;
  return scope(() => {
    const places =
      typeof position === 'number'
        ? arange(position, position + length, 1, { dtype: 'int32', device })
        : position;
    return maximum(sub(places, starts), 0);
  });
}
