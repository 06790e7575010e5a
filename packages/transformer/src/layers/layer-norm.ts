import { type Tensor, checkCount, checkNumber, layerNorm, requireTensor } from '@roofline/tensor-core';
import { Module } from '../module/module.ts';
import {
  type ParameterOptions,
  checkParameterOptions,
  onesParameter,
  zerosParameter,
} from '../module/parameter.ts';

/**
 * (x - mean(x)) / √(var(x) + eps) · weight + bias over the last dimension (Ba et al. 2016), with the statistics in float32. The
 * weight starts as ones, the bias as zeros. Under autocast the result is float32, as PyTorch's.
 */
export class LayerNorm extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;
  readonly bias: Tensor;
  readonly eps: number;

  constructor(dimension: number, options: Omit<ParameterOptions, 'generator'> = {}, eps = 1e-5) {
    super();
    checkCount('LayerNorm', 'the dimension', dimension, 1);
    checkParameterOptions('LayerNorm', options);
    const isEpsilon = (value: number) => value >= 0 && value < Infinity;
    checkNumber('LayerNorm', 'eps', eps, 'a finite number of zero or more', isEpsilon);
    this.weight = onesParameter([dimension], options);
    this.bias = zerosParameter([dimension], options);
    this.eps = eps;
  }

  protected override compute(x: Tensor): Tensor {
    requireTensor('LayerNorm', x);
    return layerNorm(x, this.weight, this.bias, this.eps);
  }
}
