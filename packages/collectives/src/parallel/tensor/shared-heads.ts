import { type Tensor, concat, defineFunction, isGradEnabled, slice, zeros } from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { allReduce } from '../../ops/all-reduce.ts';

/** How many neighbouring ranks have each head of keys and values alike: several where there are fewer heads than ranks. */
export function copiesOfHeads(keyValueHeads: number, ranks: number): number {
  return Math.max(1, ranks / keyValueHeads);
}

/**
 * Parameters of heads of keys and values that several ranks have alike, each for its own queries (as Megatron-LM does with grouped
 * queries). `share` gives one as a rank uses it: its gradient is the sum of the gradients of all ranks that have it.
 */
export class SharedHeads {
  readonly #share: (parameter: Tensor) => Tensor;

  constructor(copies: number, group: ProcessGroup) {
    const heads = group.size / copies;
    const own = Math.floor(group.rank / copies);
    this.#share = defineFunction<Tensor>({
      name: 'sharedHeads',
      forward: (_, parameter) => parameter!,
      backward: (_, gradient) => gradient && sumOfCopies(gradient, heads, own, group),
    });
  }

  share(parameter: Tensor): Tensor {
    return isGradEnabled() && parameter.requiresGrad ? this.#share(parameter) : parameter;
  }
}

/**
 * The sums of all heads at once, zeros in the places of others': a group of those that share a head is not needed, and all of them get
 * the same bits.
 */
function sumOfCopies(gradient: Tensor, heads: number, own: number, group: ProcessGroup): Tensor {
  const [rows, ...inner] = gradient.shape as [number, ...number[]];
  const { dtype, device } = gradient;
  const none = (count: number) => (count > 0 ? [zeros([count * rows, ...inner], { dtype, device })] : []);
  const all = concat([...none(own), gradient, ...none(heads - own - 1)], 0);
  return slice(allReduce(all, group), 0, own * rows, (own + 1) * rows);
}
