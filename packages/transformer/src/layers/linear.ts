import {
  ShapeError,
  type Tensor,
  add,
  cast,
  checkCount,
  checkFlag,
  formatShape,
  linear,
  requireTensor,
} from '@roofline/tensor-core';
import { sameShape } from '@roofline/tensor-core/kernel-api';
import { Module } from '../module/module.ts';
import {
  type ParameterOptions,
  checkParameterOptions,
  seededGenerator,
  truncatedNormalParameter,
  zerosParameter,
} from '../module/parameter.ts';

export interface LinearOptions extends ParameterOptions {
  /** A parameter [out, in] of another module, to be tied with it. Default: one of its own. */
  readonly weight?: Tensor;
  /** The seed of new weights, in place of a generator. */
  readonly seed?: number;
  /** Whether a bias [out], which begins as zeros, is added. Default false. */
  readonly bias?: boolean;
}

/** The standard deviation of new weights (Glorot & Bengio 2010). */
export function linearStd(inFeatures: number, outFeatures: number): number {
  return Math.sqrt(2 / (inFeatures + outFeatures));
}

/**
 * x · Wᵀ, plus a bias where it has one: [..., in] -> [..., out]. W is [out, in], drawn with std √(2 / (in + out)). The result has
 * the dtype of the product, under autocast the low precision, as PyTorch's.
 */
export class Linear extends Module<[x: Tensor], Tensor> {
  readonly weight: Tensor;
  /** [out]; null without one. */
  readonly bias: Tensor | null;

  /**
   * Throws a ShapeError for a given weight that is not [outFeatures, inFeatures], and a RooflineError (code OPTION) for a seed
   * next to a generator.
   */
  constructor(inFeatures: number, outFeatures: number, linearOptions: LinearOptions = {}) {
    super();
    checkCount('Linear', 'inFeatures', inFeatures, 1);
    checkCount('Linear', 'outFeatures', outFeatures, 1);
    checkParameterOptions('Linear', linearOptions, ['weight', 'seed', 'bias']);
    const { weight, seed, bias = false, ...options } = linearOptions;
    checkFlag('Linear', 'bias', bias);
    if (weight !== undefined) requireTensor('Linear', weight);
    const shape = [outFeatures, inFeatures];
    if (weight && !sameShape(weight.shape, shape)) {
      throw new ShapeError(
        `Linear: the weight ${formatShape(weight.shape)} to tie with must be ${formatShape(shape)}.`,
      );
    }
    const drawn = { ...options, generator: seededGenerator('Linear', seed, options.generator) };
    this.weight = weight ?? truncatedNormalParameter(shape, linearStd(inFeatures, outFeatures), drawn);
    this.bias = bias ? zerosParameter([outFeatures], options) : null;
  }

  protected override compute(x: Tensor): Tensor {
    const y = linear(x, this.weight);
    return this.bias === null ? y : add(y, cast(this.bias, y.dtype));
  }
}
