import {
  RooflineError,
  type Tensor,
  checkCount,
  checkFlag,
  describeValue,
  gelu,
} from '@roofline/tensor-core';
import { Linear } from './linear.ts';
import { Module } from '../module/module.ts';
import { type ParameterOptions, checkParameterOptions } from '../module/parameter.ts';

/** Options of `GeluNetwork`. */
export interface GeluNetworkOptions extends ParameterOptions {
  /** How GELU is calculated; see tensor-core's `gelu`. Default `none`. */
  readonly approximate?: 'none' | 'tanh';
  /** Whether both products have biases. Default false. */
  readonly bias?: boolean;
}

/** The feed-forward network w2(gelu(w1 x)) of GPT-2 (Radford et al. 2019): [..., d] -> [..., d]. */
export class GeluNetwork extends Module<[x: Tensor], Tensor> {
  readonly w1: Linear;
  readonly w2: Linear;
  readonly #approximate: 'none' | 'tanh';

  constructor(modelDimension: number, feedForwardDimension: number, options: GeluNetworkOptions = {}) {
    super();
    checkCount('GeluNetwork', 'modelDimension', modelDimension, 1);
    checkCount('GeluNetwork', 'feedForwardDimension', feedForwardDimension, 1);
    checkParameterOptions('GeluNetwork', options, ['approximate', 'bias']);
    const { approximate = 'none', ...linear } = options;
    if (approximate !== 'none' && approximate !== 'tanh') {
      throw new RooflineError(
        'OPTION',
        `GeluNetwork: approximate must be none or tanh, not ${describeValue(approximate)}.`,
      );
    }
    if (linear.bias !== undefined) checkFlag('GeluNetwork', 'bias', linear.bias);
    this.w1 = new Linear(modelDimension, feedForwardDimension, linear);
    this.w2 = new Linear(feedForwardDimension, modelDimension, linear);
    this.#approximate = approximate;
  }

  protected override compute(x: Tensor): Tensor {
    return this.w2.forward(gelu(this.w1.forward(x), { approximate: this.#approximate }));
  }
}
