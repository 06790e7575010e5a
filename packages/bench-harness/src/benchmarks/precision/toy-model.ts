import {
  type Device,
  type Tensor,
  autocast,
  crossEntropy,
  keep,
  layerNorm,
  linear,
  ones,
  randint,
  randn,
  relu,
  scope,
  zeros,
} from '@roofline/tensor-core';
import type { LowDType, ToyDtypes } from './parameters.ts';

const sizes = { batch: 4, inputs: 5, hidden: 10, classes: 5 };

/** The dtypes in a linear layer to 10, ReLU, layerNorm and a linear layer, under autocast and after it. */
export function readToyDtypes(device: Device, dtype: LowDType): ToyDtypes {
  return scope(() => {
    const { batch, inputs, hidden, classes } = sizes;
    const parameters = [
      randn([hidden, inputs], { device, seed: 1 }),
      ones([hidden], { device }),
      zeros([hidden], { device }),
      randn([classes, hidden], { device, seed: 2 }),
    ].map((parameter) => keep(parameter).requiresGrad_());
    const [first, weight, bias, second] = parameters as [Tensor, Tensor, Tensor, Tensor];
    const x = randn([batch, inputs], { device, seed: 3 });
    const targets = randint(0, classes, [batch], { device, seed: 4 });
    const tensors = autocast(dtype, () => {
      const hidden = linear(x, first);
      const normal = layerNorm(relu(hidden), weight, bias);
      const logits = linear(normal, second);
      return { hidden, normal, logits, loss: crossEntropy(logits, targets) };
    });
    tensors.loss.backward();
    const dtypes = {
      parameters: same(parameters),
      'first layer': tensors.hidden.dtype,
      layerNorm: tensors.normal.dtype,
      logits: tensors.logits.dtype,
      loss: tensors.loss.dtype,
      gradients: same(parameters.map(({ grad }) => grad!)),
    };
    for (const parameter of parameters) parameter.dispose();
    return dtypes;
  });
}

/** The one dtype of all, or their list. */
function same(tensors: readonly Tensor[]): string {
  return [...new Set(tensors.map(({ dtype }) => dtype))].join(', ');
}
