import {
  type Tensor,
  arange,
  greater,
  scope,
  slice,
  sub,
  unsqueeze,
  where,
  zeros,
} from '@roofline/tensor-core';
import type { KeysAndValues } from '../generation/key-value-cache.ts';
import type { AttentionFunction } from './attention-function.ts';

/**
 * Attention in which query i sees of the keys j that a causal mask leaves only those of i − window < j, itself among them (Beltagy et al.
 * 2020; `sliding_window_overlay` of `transformers`). Keys that no query sees are not given to it, so that of a single token nothing has to be
 * masked; it is asked for a `window` only where it has to leave out more.
 */
export function withinWindow(attention: AttentionFunction, window: number): AttentionFunction {
  return (q, k, v, settings) => {
    const queries = q.shape[2]!;
    if (k.shape[2]! <= window) return attention(q, k, v, settings);
    return scope(() => {
      const [keys, values] = [lastOf(k, 2, window + queries - 1), lastOf(v, 2, window + queries - 1)];
      return attention(q, keys, values, queries === 1 ? settings : { ...settings, window });
    });
  };
}

/** What a single token at `position` sees of keys of which `visible` are there. */
export function visibleWithin(
  window: number,
  { keys, values, visible }: KeysAndValues & { readonly visible: Tensor },
  position: number | Tensor,
): KeysAndValues & { readonly visible: Tensor } {
  // Then the last key is that of the token.
  if (typeof position === 'number') {
    const [last, lastValues] = [lastOf(keys, 2, window), lastOf(values, 2, window)];
    return { keys: last, values: lastValues, visible: lastOf(visible, visible.rank - 1, window) };
  }
  const { dtype, device } = position;
  const inWindow = scope(() =>
    greater(arange(0, keys.shape[2]!, 1, { dtype, device }), sub(position, window)),
  );
  return { keys, values, visible: where(inWindow, visible, zeros([1], { dtype: 'bool', device })) };
}

/** Which keys [T, S] lie within the windows of queries, of which the last has the last key; those after a query are not left out. */
export function windowMask(window: number, queries: number, keys: number, { device }: Tensor): Tensor {
  const options = { dtype: 'int32', device } as const;
  return scope(() => {
    const first = keys - queries - window;
    return greater(arange(0, keys, 1, options), unsqueeze(arange(first, first + queries, 1, options), 1));
  });
}

/** The last `count` along a dimension, or all where there are fewer. */
function lastOf(x: Tensor, dimension: number, count: number): Tensor {
  const size = x.shape[dimension]!;
  return count < size ? slice(x, dimension, size - count) : x;
}
