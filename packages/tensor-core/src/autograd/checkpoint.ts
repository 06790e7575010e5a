import { refuseAsync } from '@roofline/cuda/host';
import { requireTensors } from '../op/require-tensor.ts';
import { autocast, autocastDType } from '../op/autocast/autocast.ts';
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
  const dtype = autocastDType();
  const draws: Draw[] = [];
  const run = (tensors: readonly Tensor[]) =>
    dtype === null ? fn(...tensors) : autocast(dtype, () => fn(...tensors));
  return defineFunction<Tensor>({
    name: 'checkpoint',
    forward(context, ...tensors) {
      context.save(...tensors);
      return recordDraws(draws, () => fn(...tensors));
    },
    backward({ saved, needs }, gradient) {
      if (gradient === null) return inputs.map(() => null);
      const leaves = saved.map((tensor, i) => (needs[i] ? tensor.detach().requiresGrad_() : tensor));
      const output = repeatDraws(draws, () => enableGrad(() => run(leaves)));
      if (output.requiresGrad) backward(output, gradient);
      return leaves.map(({ grad }) => grad && grad.detach());
    },
  })(...inputs);
}
