import { type Tensor, linear } from '@roofline/tensor-core';
import { Module } from './module.ts';
import { type ParameterOptions, truncatedNormalParameter } from './parameter.ts';

/** x · Wᵀ without a bias: [..., in] -> [..., out]. W is [out, in], drawn with std √(2 / (in + out)). */
export class Linear extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;

  constructor(inFeatures: number, outFeatures: number, options: ParameterOptions) {
    super();
    const std = Math.sqrt(2 / (inFeatures + outFeatures));
    this.weight = truncatedNormalParameter([outFeatures, inFeatures], std, options);
  }

  protected override compute(x: Tensor): Tensor {
    return linear(x, this.weight);
  }
}
