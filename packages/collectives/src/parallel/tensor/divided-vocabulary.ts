import {
  type DType,
  type Tensor,
  add,
  arange,
  cast,
  checkpoint,
  clamp,
  defineFunction,
  div,
  equal,
  exp,
  gather,
  keep,
  linear,
  log,
  max,
  mul,
  noGrad,
  notEqual,
  permute,
  reshape,
  scope,
  select,
  slice,
  squeeze,
  stack,
  sub,
  sum,
  unsqueeze,
  view,
  where,
} from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { allReduce } from '../../ops/all-reduce.ts';
import { allGather } from '../../ops/gather-scatter.ts';

/** Targets that do not count, as of `crossEntropy`. */
const ignoreIndex = -100;
/** What the logits of a chunk of rows may take, in float32. */
const mostChunkBytes = 2 ** 29;

/** A vocabulary of which each rank has equally many tokens (Shoeybi et al. 2019, "Megatron-LM", section 3). */
export class DividedVocabulary {
  readonly #group: ProcessGroup;
  readonly #whole: number;
  readonly #own: number;
  readonly #start: number;
  /** 0, 1 ... of this rank's tokens. */
  readonly #columns: Tensor;

  constructor(vocabularySize: number, group: ProcessGroup, { device }: Pick<Tensor, 'device'>) {
    this.#group = group;
    this.#whole = vocabularySize;
    this.#own = vocabularySize / group.size;
    this.#start = group.rank * this.#own;
    this.#columns = noGrad(() => scope(() => keep(arange(0, this.#own, 1, { dtype: 'int32', device }))));
  }

  /** This rank's rows of an embedding [..., d] of ids, zeros for those of other ranks. `lookUp` gives rows by their place here. */
  embed(ids: Tensor, lookUp: (places: Tensor) => Tensor): Tensor {
    const { places, isOwn } = this.#placesOf(ids);
    return where(unsqueeze(isOwn, -1), lookUp(places), 0);
  }

  /** Where tokens stand among this rank's: those of others at some place; one that there is not, outside, on all ranks. */
  #placesOf(ids: Tensor): { places: Tensor; isOwn: Tensor } {
    const local = sub(ids, this.#start);
    const exists = equal(ids, clamp(ids, { min: 0, max: this.#whole - 1 }));
    const places = where(exists, clamp(local, { min: 0, max: this.#own - 1 }), local);
    return { places, isOwn: equal(places, local) };
  }

  /** All logits [B, T, V] of this rank's [B, T, V / n]. All ranks go on with them alike. */
  gatherLogits(own: Tensor): Tensor {
    const { rank, size } = this.#group;
    return defineFunction<Tensor>({
      name: 'gatherLogits',
      forward: (_, part) => {
        const [batch, tokens, columns] = part!.shape as [number, number, number];
        const parts = view(allGather(part!, this.#group), [size, batch, tokens, columns]);
        return reshape(permute(parts, [1, 2, 0, 3]), [batch, tokens, size * columns]);
      },
      backward: (_, gradient) => gradient && slice(gradient, 2, rank * this.#own, (rank + 1) * this.#own),
    })(own);
  }

  /**
   * `crossEntropy` of logits of which each rank has its columns: they are never gathered. x: [N, d]; the weight's rows are this
   * rank's [V / n, d]; targets: [N]. In `chunked`, a chunk's logits are made again in the backward pass, and never kept.
   */
  loss(
    x: Tensor,
    weight: Tensor,
    targets: Tensor,
    logits: 'whole' | 'chunked',
    chunkBytes = mostChunkBytes,
  ): Tensor {
    const rows = x.shape[0]!;
    const count = sum(cast(notEqual(targets, ignoreIndex), sumDType(x.dtype)));
    const sumOf = (x: Tensor, weight: Tensor, targets: Tensor) =>
      this.#sumOfLosses(linear(x, weight), targets);
    if (logits === 'whole') return div(sumOf(x, weight, targets), count);
    const step = Math.max(1, Math.floor(chunkBytes / (this.#own * Float32Array.BYTES_PER_ELEMENT)));
    const starts = Array.from({ length: Math.max(1, Math.ceil(rows / step)) }, (_, i) => i * step);
    const sums = starts.map((from) => {
      const chunk = (of: Tensor) => slice(of, 0, from, Math.min(rows, from + step));
      return checkpoint(sumOf, chunk(x), weight, chunk(targets));
    });
    return div(
      sums.reduce((total, each) => add(total, each)),
      count,
    );
  }

  /** Σ log Σ e^logits - logits[target] over the rows that count, in float32 (float64 of float64). */
  #sumOfLosses(logits: Tensor, targets: Tensor): Tensor {
    return defineFunction<Tensor>({
      name: 'dividedCrossEntropy',
      forward: ({ save }, own) => {
        const isCounted = notEqual(targets, ignoreIndex);
        const { places, isOwn } = this.#placesOf(where(isCounted, targets, 0));
        const wide = cast(own!, sumDType(own!.dtype));
        const largest = allReduce(max(wide, { dims: -1 }), this.#group, { op: 'max' });
        const exponentials = sum(exp(sub(wide, unsqueeze(largest, 1))), { dims: -1 });
        const chosen = where(isOwn, squeeze(gather(wide, 1, unsqueeze(places, 1)), 1), 0);
        const sums = allReduce(stack([exponentials, chosen]), this.#group);
        const logSumExp = add(largest, log(select(sums, 0, 0)));
        const ownPlaces = cast(where(isOwn, places, -1), 'int32');
        save(own!, logSumExp, ownPlaces, isCounted);
        return sum(where(isCounted, sub(logSumExp, select(sums, 0, 1)), 0));
      },
      backward: ({ saved }, gradient) => {
        if (gradient === null) return null;
        const [own, logSumExp, places, isCounted] = saved as readonly [Tensor, Tensor, Tensor, Tensor];
        const shares = exp(sub(cast(own, logSumExp.dtype), unsqueeze(logSumExp, 1)));
        const isTarget = equal(unsqueeze(places, 1), unsqueeze(this.#columns, 0));
        const factors = unsqueeze(where(isCounted, gradient, 0), 1);
        return cast(mul(sub(shares, cast(isTarget, shares.dtype)), factors), own.dtype);
      },
    })(logits);
  }

  dispose(): void {
    this.#columns.dispose();
  }
}

function sumDType(dtype: DType): DType {
  return dtype === 'float64' ? dtype : 'float32';
}
