import {
  type CompiledFunction,
  type Tensor,
  compile,
  fromTypedArray,
  noGrad,
  reshape,
  scope,
  select,
} from '@roofline/tensor-core';
import type { TransformerLM } from '../model/transformer-lm.ts';
import { CacheStep } from './cache-step.ts';
import type { KeyValueCache } from './key-value-cache.ts';

/** The logits of the token after each row of `rows`, which are of one length and follow those of the cache. */
export function nextLogits(
  model: TransformerLM,
  rows: readonly (readonly number[])[],
  cache: KeyValueCache | null,
): number[][] {
  return noGrad(() =>
    scope(() => {
      const logits = model.forward(idsOf(model, rows), cache ?? undefined);
      return rowsOf(select(logits, 1, -1));
    }),
  );
}

/** The program of a token's step, of each sequence of a batch. */
export class CompiledDecoding {
  readonly #model: TransformerLM;
  readonly #cache: KeyValueCache;
  readonly #step: CompiledFunction<(tokens: Tensor, position: Tensor) => Tensor>;

  constructor(model: TransformerLM, cache: KeyValueCache) {
    this.#model = model;
    this.#cache = cache;
    this.#step = compile((tokens: Tensor, position: Tensor) =>
      model.forward(tokens, new CacheStep(cache, position)),
    );
  }

  /** The logits of the token after each of `ids`, which follow those of the cache. */
  logitsAfter(ids: readonly number[]): number[][] {
    this.#cache.checkRoom(1);
    const logits = noGrad(() =>
      scope(() => {
        const position = reshape(idsOf(this.#model, [[this.#cache.length]]), [1]);
        const tokens = idsOf(
          this.#model,
          ids.map((id) => [id]),
        );
        return rowsOf(select(this.#step(tokens, position), 1, -1));
      }),
    );
    this.#cache.advance(1);
    return logits;
  }

  [Symbol.dispose](): void {
    this.#step.dispose();
  }
}

/** Ids of sequences of one length as a batch. */
function idsOf(model: TransformerLM, rows: readonly (readonly number[])[]): Tensor {
  const { device } = model.lmHead.weight;
  return fromTypedArray(Int32Array.from(rows.flat()), [rows.length, rows[0]!.length], { device });
}

function rowsOf(logits: Tensor): number[][] {
  const [rows, size] = logits.shape as [number, number];
  const values = logits.toFlatArray();
  return Array.from({ length: rows }, (_, row) => values.slice(row * size, (row + 1) * size));
}
