import { checkFunction, refuseAsync } from '@roofline/cuda/host';
import { KeptResults, type RepeatableCall, keepResults, repeatResults } from '../op/kept-results.ts';
import { requireTensors } from '../op/require-tensor.ts';
import { autocast, autocastDType, withOwnCasts } from '../op/autocast/autocast.ts';
import { type Draw, recordDraws, repeatDraws } from '../tensor/random/draw.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { backward } from './backward.ts';
import { defineFunction } from './define-function.ts';
import { enableGrad } from '../tensor/tape/grad-mode.ts';

/**
 * fn(...inputs), keeping only the inputs for the backward pass, which runs `fn` again (Chen et al. 2016, "Training Deep Nets
 * with Sublinear Memory Cost"), with the same autocast and the same random numbers, whose generators stay where they are.
 * Parameters that `fn` uses get their gradients, if at least one input requires one. Hooks of parameters that several
 * checkpoints use are called once for each. Anything else that `fn` uses and that has a history must be an input: otherwise
 * the pass through `fn` would continue into that history and free it, and others that share it would throw an AutogradError.
 */
export function checkpoint(fn: (...inputs: Tensor[]) => Tensor, ...inputs: Tensor[]): Tensor {
  refuseAsync('checkpoint', fn);
  requireTensors('checkpoint', inputs);
  return checkpointed('checkpoint', fn, inputs, null);
}

/**
 * `checkpoint(fn, ...inputs)` that keeps what is expensive to make again: the results of those calls for which `keeps` is true, such as
 * ({ op }) => op === 'flashAttention'. In the second run they take the place of their calls, which do not run. `keeps` is called once
 * for each call of an op that makes new tensors (not views, nor what is written in place), in order. Throws what `checkpoint` does, and
 * an AutogradError for a kept result that is written in place later, and if `fn` calls other ops in its second run.
 *
 * @example
 * ```ts
 * import { exp, matmul, ones, selectiveCheckpoint } from '@roofline/tensor-core';
 *
 * const [x, weight] = [ones([2, 3], { requiresGrad: true }), ones([3, 3], { requiresGrad: true })];
 * const y = selectiveCheckpoint(({ op }) => op === 'matmul', (a) => exp(matmul(a, weight)), x);
 * y.backward(ones([2, 3])); // makes exp again, and not the product
 * ```
 */
export function selectiveCheckpoint(
  keeps: (call: RepeatableCall) => boolean,
  fn: (...inputs: Tensor[]) => Tensor,
  ...inputs: Tensor[]
): Tensor {
  checkFunction('selectiveCheckpoint', 'what it keeps', keeps);
  refuseAsync('selectiveCheckpoint', fn);
  requireTensors('selectiveCheckpoint', inputs);
  return checkpointed('selectiveCheckpoint', fn, inputs, keeps);
}

function checkpointed(
  name: string,
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  keeps: ((call: RepeatableCall) => boolean) | null,
): Tensor {
  const dtype = autocastDType();
  const draws: Draw[] = [];
  const kept = keeps && new KeptResults(keeps);
  const run = (tensors: readonly Tensor[]) =>
    dtype === null ? fn(...tensors) : autocast(dtype, () => fn(...tensors));
  const call = defineFunction<Tensor>({
    name,
    forward(context, ...tensors) {
      // Casts of the parameters that only this function uses are freed with it.
      const once = () => withOwnCasts(() => fn(...tensors));
      const output = recordDraws(draws, () => (kept ? keepResults(kept, once) : once()));
      context.save(...tensors, ...(kept?.tensors ?? []));
      return output;
    },
    backward({ saved, needs }, gradient) {
      if (gradient === null) return inputs.map(() => null);
      const leaves = saved
        .slice(0, inputs.length)
        .map((tensor, i) => (needs[i] ? tensor.detach().requiresGrad_() : tensor));
      const again = () => enableGrad(() => run(leaves));
      const repeater = kept?.repeater(saved.slice(inputs.length));
      const output = repeatDraws(draws, () => (repeater ? repeatResults(repeater, again) : again()));
      if (output.requiresGrad) backward(output, gradient);
      return leaves.map(({ grad }) => grad && grad.detach());
    },
  });
  try {
    return call(...inputs);
  } finally {
    kept?.dispose();
  }
}
