import {
  type Tensor,
  autocastDType,
  checkCount,
  checkNumber,
  requireTensor,
  rmsNorm,
} from '@roofline/tensor-core';
import { Module } from '../module/module.ts';
import { type ParameterOptions, checkParameterOptions, onesParameter } from '../module/parameter.ts';

/**
 * x / √(mean(x²) + eps) · weight over the last dimension (Zhang & Sennrich 2019), with the statistics in
 * float32. The weight starts as ones. Under autocast the result is in the low precision, to which the matrix
 * products after a norm would round it anyway.
 */
export class RMSNorm extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;
  readonly eps: number;

  constructor(dimension: number, options: Omit<ParameterOptions, 'generator'> = {}, eps = 1e-5) {
    super();
    checkCount('RMSNorm', 'the dimension', dimension, 1);
    checkParameterOptions('RMSNorm', options);
    checkNumber(
      'RMSNorm',
      'eps',
      eps,
      'a finite number of zero or more',
      (value) => value >= 0 && value < Infinity,
    );
    this.weight = onesParameter([dimension], options);
    this.eps = eps;
  }

  protected override compute(x: Tensor): Tensor {
    requireTensor('RMSNorm', x);
    return rmsNorm(x, this.weight, this.eps, { dtype: autocastDType() ?? x.dtype });
  }
}
