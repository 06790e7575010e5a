import { RooflineError, type Tensor, describeValue } from '@roofline/tensor-core';

/**
 * The ranks that each have another part of the gradients, as `FullySharded.ranks` of @roofline/collectives: both are
 * collectives, which all of these ranks call.
 */
export interface GradientRanks {
  /** Replaces `x` by its sum over the ranks. */
  sum(x: Tensor): void;
  /** Replaces `x` by the largest of all ranks. */
  max(x: Tensor): void;
  /** Whether this rank counts a parameter's gradient in the norm, of those that several ranks have alike one. Default: all of them. */
  counts?(parameter: Tensor): boolean;
}

/** Throws a RooflineError (code ARGUMENT), which names `owner`, for what are no ranks. */
export function requireRanks(owner: string, ranks: GradientRanks): void {
  const isFunction = (value: unknown) => typeof value === 'function';
  const counts = isFunction(ranks?.counts) || ranks?.counts === undefined;
  if (isFunction(ranks?.sum) && isFunction(ranks.max) && counts) return;
  throw new RooflineError(
    'ARGUMENT',
    `${owner}: ranks must be as those of fullyShard(), with sum() and max(), not ${describeValue(ranks)}.`,
  );
}
