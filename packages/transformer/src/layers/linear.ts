import {
  ShapeError,
  type Tensor,
  checkCount,
  checkGenerator,
  formatShape,
  linear,
  requireTensor,
} from '@roofline/tensor-core';
import { sameShape } from '@roofline/tensor-core/kernel-api';
import { Module } from '../module/module.ts';
import {
  type ParameterOptions,
  checkParameterOptions,
  truncatedNormalParameter,
} from '../module/parameter.ts';

export interface LinearOptions extends ParameterOptions {
  /** A parameter [out, in] of another module, to be tied with it. Default: one of its own. */
  readonly weight?: Tensor;
}

/** The standard deviation of new weights (Glorot & Bengio 2010). */
export function linearStd(inFeatures: number, outFeatures: number): number {
  return Math.sqrt(2 / (inFeatures + outFeatures));
}

/** x · Wᵀ without a bias: [..., in] -> [..., out]. W is [out, in], drawn with std √(2 / (in + out)). */
export class Linear extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;

  /** Throws a ShapeError for a given weight that is not [outFeatures, inFeatures]. */
  constructor(inFeatures: number, outFeatures: number, linearOptions: LinearOptions) {
    super();
    checkCount('Linear', 'inFeatures', inFeatures, 1);
    checkCount('Linear', 'outFeatures', outFeatures, 1);
    checkParameterOptions('Linear', linearOptions, ['weight']);
    const { weight, ...options } = linearOptions;
    if (weight === undefined) checkGenerator('Linear', options.generator);
    else requireTensor('Linear', weight);
    const shape = [outFeatures, inFeatures];
    if (weight && !sameShape(weight.shape, shape)) {
      throw new ShapeError(
        `Linear: the weight ${formatShape(weight.shape)} to tie with must be ${formatShape(shape)}.`,
      );
    }
    this.weight = weight ?? truncatedNormalParameter(shape, linearStd(inFeatures, outFeatures), options);
  }

  protected override compute(x: Tensor): Tensor {
    return linear(x, this.weight);
  }
}
