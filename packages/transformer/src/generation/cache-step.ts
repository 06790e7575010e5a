import {
  DTypeError,
  type Device,
  RooflineError,
  ShapeError,
  type Tensor,
  arange,
  describeValue,
  formatShape,
  lessEqual,
  maximum,
  requireTensor,
  sub,
} from '@roofline/tensor-core';
import { KeyValueCache, type AttentionCache } from './key-value-cache.ts';

/**
 * One more token of each sequence for a `KeyValueCache`, at a position that is a tensor: whatever it holds, shapes are the
 * same, so that one program of `compile` serves all positions. Attention reads the whole memory of the cache and leaves out
 * what lies after the position; it is `plainAttention`, whatever the model's is. The cache must hold a position
 * already, and learns of the new one by `advance`, outside the program:
 *
 *     const step = compile((token: Tensor, position: Tensor) => model.forward(token, new CacheStep(cache, position)));
 *     const logits = noGrad(() => step(token, tensor([cache.length], { dtype: 'int32' }))); // [B, 1] ids
 *     cache.advance(1);
 *
 * Throws a DTypeError or ShapeError for a position that is not int32 or int64 [1]. A position outside the cache is noticed
 * on the CPU alone, see `indexCopyInPlace`: ask `checkRoom` before.
 */
export class CacheStep {
  readonly #cache: KeyValueCache;
  readonly #position: Tensor;
  /** [capacity] or [B, capacity] bool. */
  readonly #visible: Tensor;

  constructor(cache: KeyValueCache, position: Tensor) {
    if (!(cache instanceof KeyValueCache)) {
      throw new RooflineError(
        'ARGUMENT',
        `CacheStep: the cache must be a KeyValueCache, not ${describeValue(cache)}.`,
      );
    }
    requireTensor('CacheStep', position);
    const { dtype, shape, device } = position;
    if (dtype !== 'int32' && dtype !== 'int64')
      throw new DTypeError(`CacheStep: the position must be int32 or int64, not ${dtype}.`);
    if (shape.length !== 1 || shape[0] !== 1)
      throw new ShapeError(`CacheStep: the position must be [1], not ${formatShape(shape)}.`);
    this.#cache = cache;
    this.#position = position;
    const places = arange(0, cache.capacity, 1, { dtype, device });
    const starts = cache.startsOn(device);
    this.#visible =
      starts === null
        ? lessEqual(places, position)
        : lessEqual(maximum(sub(places, position), sub(starts, places)), 0);
  }

  /** That of the cache. */
  startsOn(device: Device): Tensor | null {
    return this.#cache.startsOn(device);
  }

  /** The part of one layer of the model, counted from 0. */
  layer(index: number): AttentionCache {
    const layer = this.#cache.layer(index);
    return {
      position: this.#position,
      append: (keys, values) => ({
        ...layer.write(this.#position, keys, values),
        visible: this.#visible,
      }),
    };
  }
}
