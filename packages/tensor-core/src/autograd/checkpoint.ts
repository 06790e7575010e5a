import { refuseAsync } from '../tensor/lifetime/synchronous.ts';
import { requireTensors } from '../op/require-tensor.ts';
import { autocast, autocastDType } from '../autocast/autocast.ts';
import { defaultGenerator } from '../random/generator.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { backward } from './backward.ts';
import { defineFunction } from './define-function.ts';
import { enableGrad } from './grad-mode.ts';

/**
 * fn(...inputs), of which nothing but the inputs is kept for the backward pass: that runs `fn` again (Chen et al. 2016,
 * "Training Deep Nets with Sublinear Memory Cost"), with the same autocast and the default random generator where it
 * was. Parameters that `fn` uses get their gradients, if at least one input requires one. Hooks of parameters that
 * several checkpoints use are called once for each.
 */
export function checkpoint(fn: (...inputs: Tensor[]) => Tensor, ...inputs: Tensor[]): Tensor {
  refuseAsync('checkpoint', fn);
  requireTensors('checkpoint', inputs);
  const dtype = autocastDType();
  const { offset } = defaultGenerator;
  const run = (tensors: readonly Tensor[]) =>
    dtype === null ? fn(...tensors) : autocast(dtype, () => fn(...tensors));
  return defineFunction<Tensor>({
    name: 'checkpoint',
    forward(context, ...tensors) {
      context.save(...tensors);
      return fn(...tensors);
    },
    backward({ saved, needs }, gradient) {
      if (gradient === null) return inputs.map(() => null);
      const leaves = saved.map((tensor, i) => (needs[i] ? tensor.detach().requiresGrad_() : tensor));
      const output = withRandomOffset(offset, () => enableGrad(() => run(leaves)));
      if (output.requiresGrad) backward(output, gradient);
      return leaves.map(({ grad }) => grad && grad.detach());
    },
  })(...inputs);
}

function withRandomOffset<T>(offset: number, fn: () => T): T {
  const now = defaultGenerator.offset;
  defaultGenerator.offset = offset;
  try {
    return fn();
  } finally {
    defaultGenerator.offset = now;
  }
}
