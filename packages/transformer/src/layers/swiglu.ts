import { type Tensor, checkCount, checkFlag, swiglu } from '@roofline/tensor-core';
import { Linear } from './linear.ts';
import { Module } from '../module/module.ts';
import { type ParameterOptions, checkParameterOptions } from '../module/parameter.ts';

/** Options of `SwiGLU`. */
export interface SwiGLUOptions extends ParameterOptions {
  /** Whether the products have biases. Default false. */
  readonly bias?: boolean;
}

/** The gated feed-forward network w2(silu(w1 x) · w3 x) (Shazeer 2020): [..., d] -> [..., d]. */
export class SwiGLU extends Module<[x: Tensor], Tensor> {
  readonly w1: Linear;
  readonly w2: Linear;
  readonly w3: Linear;

  constructor(modelDimension: number, feedForwardDimension: number, options: SwiGLUOptions = {}) {
    super();
    checkCount('SwiGLU', 'modelDimension', modelDimension, 1);
    checkCount('SwiGLU', 'feedForwardDimension', feedForwardDimension, 1);
    checkParameterOptions('SwiGLU', options, ['bias']);
    if (options.bias !== undefined) checkFlag('SwiGLU', 'bias', options.bias);
    this.w1 = new Linear(modelDimension, feedForwardDimension, options);
    this.w2 = new Linear(feedForwardDimension, modelDimension, options);
    this.w3 = new Linear(modelDimension, feedForwardDimension, options);
  }

  protected override compute(x: Tensor): Tensor {
    return this.w2.forward(swiglu(this.w1.forward(x), this.w3.forward(x)));
  }
}
