import {
  ShapeError,
  type Tensor,
  autocastDType,
  cast,
  defineFunction,
  expand,
  formatShape,
  isBackwardRunning,
  isGradEnabled,
  reshape,
  slice,
  view,
} from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { allReduce } from '../../ops/all-reduce.ts';
import { allGather, reduceScatter } from '../../ops/gather-scatter.ts';

/**
 * The tokens that each rank has between divided layers (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
 * Transformer Models", section 4.2.2). Of the n ranks' activations [B, T, d], flattened, rank r has the r-th part, of the shape
 * [B, T / n, d]: so gathering and scattering copy nothing, and norms and residuals do not ask whose tokens they are. Where nothing
 * is to be trained, as where tokens are generated one by one, each rank has all tokens.
 */
export class TokenShards {
  readonly #group: ProcessGroup;
  /** Of the ids that came last. */
  #ids: readonly [batch: number, tokens: number] = [0, 0];
  #areSplit = false;
  /** A replicated parameter as one rank's part of the calculation uses it: its gradient is the sum of all parts'. */
  readonly #shared: (parameter: Tensor) => Tensor;

  constructor(group: ProcessGroup) {
    this.#group = group;
    this.#shared = defineFunction<Tensor>({
      name: 'sharedParameter',
      forward: (_, parameter) => parameter!,
      backward: (_, gradient) => gradient && allReduce(gradient, group),
    });
  }

  /** Notes the ids [B, T] that a forward pass begins with. Throws a ShapeError for tokens that cannot be divided. */
  begin({ shape }: Tensor): void {
    const [batch, tokens] = shape as [number, number];
    this.#ids = [batch, tokens];
    this.#areSplit = isGradEnabled();
    if (!this.#areSplit || tokens % this.#group.size === 0) return;
    throw new ShapeError(
      `parallelize: ids ${formatShape(shape)} have ${tokens} tokens in a sequence, which ${this.#group.size} tensor ranks cannot ` +
        'divide; take a context that is a multiple of them, or noGrad() where nothing is trained.',
    );
  }

  /** Whether each rank has some of the tokens. What is calculated again in a backward pass was calculated to be trained. */
  get areSplit(): boolean {
    return this.#areSplit || isBackwardRunning();
  }

  /** What column-wise layers read: all tokens, in the dtype of their products. */
  enter(x: Tensor): Tensor {
    if (!this.areSplit) return x;
    const lower = autocastDType();
    const sent = lower !== null && x.dtype === 'float32' ? cast(x, lower) : x;
    const [batch, tokens, features] = x.shape as [number, number, number];
    return view(allGather(sent, this.#group), [batch, tokens * this.#group.size, features]);
  }

  /** The sum of what row-wise layers gave on each rank, of this rank's tokens. */
  leave(partial: Tensor): Tensor {
    if (!this.areSplit) return allReduce(partial, this.#group);
    const { size } = this.#group;
    const [batch, tokens, features] = partial.shape as [number, number, number];
    const pieces = reshape(partial, [batch * size, tokens / size, features]);
    return reduceScatter(pieces, this.#group);
  }

  /** A parameter that all ranks have alike, and use for their part alone. */
  shared(parameter: Tensor): Tensor {
    return isGradEnabled() && parameter.requiresGrad ? this.#shared(parameter) : parameter;
  }

  /** Of what is added to each sequence, [T, d], what belongs to this rank's tokens. */
  ofPositions(rows: Tensor): Tensor {
    if (!this.areSplit) return rows;
    const { rank, size } = this.#group;
    const [batch, tokens] = this.#ids;
    const features = rows.shape[1]!;
    const own = (batch * tokens) / size;
    const all = reshape(expand(rows, [batch, tokens, features]), [batch * tokens, features]);
    return view(slice(all, 0, rank * own, (rank + 1) * own), [batch, tokens / size, features]);
  }
}
