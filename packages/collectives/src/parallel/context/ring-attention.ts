import {
  type Tensor,
  add,
  cast,
  concat,
  defineFunction,
  scope,
  select,
  slice,
  stack,
  zerosLike,
} from '@roofline/tensor-core';
import { asOneCall } from '@roofline/tensor-core/kernel-api';
import type { ProcessGroup } from '../../group/process-group.ts';
import { type AttentionPart, type AttentionParts, joinParts, wideDType } from './attention-parts.ts';
import { Ring } from './ring.ts';

type Triple = readonly [q: Tensor, k: Tensor, v: Tensor];
type Halves<T> = readonly [first: T, second: T];

const name = 'ringAttention';

/** The dimension of queries and keys. */
const tokens = 2;

/**
 * Causal attention of a sequence that is divided over ranks (Liu et al. 2023, "Ring Attention with Blockwise Transformers for
 * Near-Infinite Context"): of 2 n equal chunks rank r has the r-th and the one as far from the end, so that each sees equally many keys.
 * Keys and values go from rank to rank while each rank calculates with those that it has, and in the backward pass once more, followed
 * by their gradients, which are summed in float32 (float64 of float64).
 *
 * q [batch, heads, T / n, d] and k, v [batch, keyHeads, T / n, d], T / n even, to the output of this rank's tokens.
 */
export function ringAttention(
  group: ProcessGroup,
  parts: AttentionParts,
  scale: number,
): (q: Tensor, k: Tensor, v: Tensor) => Tensor {
  return defineFunction<Tensor>({
    name,
    forward({ save }, q, k, v) {
      // Recomputation keeps this, and not what each part of the keys gave.
      const [output, largest, sum] = asOneCall(name, () => {
        const joined = attend(group, parts, scale, [q!, k!, v!]);
        return [cast(joined.output, q!.dtype), joined.largest, joined.sum];
      });
      save(q!, k!, v!, output!, largest!, sum!);
      return output!;
    },
    backward({ saved }, gradient) {
      if (gradient === null) return [null, null, null];
      const [q, k, v, output, largest, sum] = saved;
      const joined = { output: output!, largest: largest!, sum: sum! };
      return gradientsOf(group, parts, scale, [q!, k!, v!], joined, gradient);
    },
  });
}

function attend(group: ProcessGroup, parts: AttentionParts, scale: number, [q, k, v]: Triple): AttentionPart {
  const [ring, apart] = [new Ring(group), { causal: false, scale }];
  const steps = ring.steps();
  let coming = steps.length > 0 ? ring.pass(stack([k, v])) : null;
  let halves = scope(() => halvesOfPart(parts.forward(q, k, v, { causal: true, scale })));
  for (const { isEarlier, isLast } of steps) {
    const here = coming!;
    coming = isLast ? null : ring.pass(here);
    const [first, second] = halves;
    halves = scope((): Halves<AttentionPart> => {
      const [keys, values] = [select(here, 0, 0), select(here, 0, 1)];
      // What is earlier has a chunk before both of this rank's, what is later two between them.
      if (!isEarlier) return [first, joinParts(second, parts.forward(halfOf(q, 1), keys, values, apart))];
      const [ofFirst, ofSecond] = halvesOfPart(parts.forward(q, halfOf(keys, 0), halfOf(values, 0), apart));
      return [joinParts(first, ofFirst), joinParts(second, ofSecond)];
    });
    here.dispose();
  }
  return wholeOfPart(halves);
}

function gradientsOf(
  group: ProcessGroup,
  parts: AttentionParts,
  scale: number,
  [q, k, v]: Triple,
  joined: AttentionPart,
  gradient: Tensor,
): Triple {
  const [ring, apart, dtype] = [new Ring(group), { causal: false, scale }, wideDType(q.dtype)];
  const steps = ring.steps();
  const whole = { q, joined, gradient };
  const later = { q: halfOf(q, 1), joined: halvesOfPart(joined)[1], gradient: halfOf(gradient, 1) };
  const backward = (of: typeof whole, k: Tensor, v: Tensor, settings: typeof apart): Triple => {
    const gradients = parts.backward(of.q, k, v, of.joined, of.gradient, settings);
    return gradients.map((x) => cast(x, dtype)) as unknown as Triple;
  };
  let coming = steps.length > 0 ? ring.pass(stack([k, v])) : null;
  let [ofQueries, ofKeys] = scope(() => {
    const [gradQ, gradK, gradV] = backward(whole, k, v, { causal: true, scale });
    return [gradQ, stack([gradK, gradV])] as [Tensor, Tensor];
  });
  for (const { isEarlier, isLast } of steps) {
    const here = coming!;
    coming = isLast ? null : ring.pass(here);
    // Of the keys that are here, from the ranks that had them before.
    const [before, queriesBefore] = [ring.pass(ofKeys), ofQueries];
    ofKeys.dispose();
    [ofQueries, ofKeys] = scope(() => {
      const [keys, values] = [select(here, 0, 0), select(here, 0, 1)];
      const [gradQ, gradK, gradV] = isEarlier
        ? backward(whole, halfOf(keys, 0), halfOf(values, 0), apart)
        : backward(later, keys, values, apart);
      const [queries, own] = isEarlier
        ? [gradQ, withZeros(stack([gradK, gradV]), 1, tokens + 1)]
        : [withZeros(gradQ, 0, tokens), stack([gradK, gradV])];
      return [add(queriesBefore, queries), add(before, own)] as [Tensor, Tensor];
    });
    for (const used of [here, before, queriesBefore]) used.dispose();
  }
  // The last keys were the next rank's.
  const own = steps.length > 0 ? ring.pass(ofKeys) : ofKeys;
  return [ofQueries, select(own, 0, 0), select(own, 0, 1)].map((x) => cast(x, q.dtype)) as unknown as Triple;
}

function halfOf(x: Tensor, which: 0 | 1): Tensor {
  const half = x.shape[tokens]! / 2;
  return slice(x, tokens, which * half, (which + 1) * half);
}

function halvesOfPart({ output, largest, sum }: AttentionPart): Halves<AttentionPart> {
  const half = (which: 0 | 1) => ({
    output: halfOf(output, which),
    largest: halfOf(largest, which),
    sum: halfOf(sum, which),
  });
  return [half(0), half(1)];
}

function wholeOfPart([first, second]: Halves<AttentionPart>): AttentionPart {
  const both = (a: Tensor, b: Tensor) =>
    concat([cast(a, wideDType(a.dtype)), cast(b, wideDType(b.dtype))], tokens);
  return {
    output: both(first.output, second.output),
    largest: both(first.largest, second.largest),
    sum: both(first.sum, second.sum),
  };
}

/** The half of a tensor's `dimension` that is not there, as zeros: the first or the second. */
function withZeros(x: Tensor, which: 0 | 1, dimension: number): Tensor {
  const zeros = zerosLike(x);
  return concat(which === 0 ? [zeros, x] : [x, zeros], dimension);
}
