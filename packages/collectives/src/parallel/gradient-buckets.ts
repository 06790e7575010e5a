import {
  RooflineError,
  type Tensor,
  alias,
  byteSize,
  copy,
  copyInPlace,
  fillInPlace,
  formatShape,
  keep,
  noGrad,
  zeros,
  zerosLike,
} from '@roofline/tensor-core';
import type { ReduceOptions } from '../group/collective-checks.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import type { Work } from '../group/work.ts';
import { layOut, viewAt } from './flat-memory.ts';

type Context = Pick<ReduceOptions, 'context'>;

/** Gradients that are reduced by one call. */
export interface GradientBucket {
  readonly parameters: readonly Tensor[];
  /** Where all of its gradients lie; null where each has memory of its own. */
  readonly buffer: Tensor | null;
  /** Gives a parameter that has no gradient one of zeros. */
  fillZeros(parameter: Tensor): void;
  /** Bytes of gradients that `average` had to copy to their places, as they lay elsewhere. */
  readonly copiedBytes: number;
  /** Begins to average the gradients, which all are there, over the group. All ranks give the same `context`, if any. */
  average(group: ProcessGroup, context: Context): Work;
  /** Takes the gradients' memory away from the parameters, which keep the gradients that they have. */
  dispose(): void;
}

/** One parameter's gradient, wherever the backward pass left it. */
export class SingleGradient implements GradientBucket {
  readonly copiedBytes = 0;
  readonly buffer = null;
  readonly parameters: readonly [Tensor];

  constructor(parameter: Tensor) {
    this.parameters = [parameter];
  }

  fillZeros(parameter: Tensor): void {
    parameter.grad = keep(zerosLike(parameter.detach()));
  }

  average(group: ProcessGroup, context: Context): Work {
    return group.allReduce(gradientOf(this.parameters[0]), { op: 'average', ...context });
  }

  dispose(): void {}
}

/**
 * A flat buffer, of which each parameter's gradient is a view: nothing is copied out of it, and nothing into it that the
 * backward pass can write there (see Tensor.setGradientBuffer).
 */
export class FlatBucket implements GradientBucket {
  copiedBytes = 0;
  readonly parameters: readonly Tensor[];
  readonly buffer: Tensor;
  readonly #views: ReadonlyMap<Tensor, Tensor>;

  /** Takes parameters of one dtype and one device. */
  constructor(parameters: readonly Tensor[]) {
    this.parameters = parameters;
    const { dtype, device } = parameters[0]!;
    const { starts, size } = layOut(parameters, byteSize(dtype));
    // What fills the gaps is reduced too, and stays zero.
    [this.buffer, this.#views] = noGrad(() => {
      const flat = keep(zeros([size], { dtype, device }));
      return [
        flat,
        new Map(parameters.map((parameter, i) => [parameter, viewAt(flat, starts[i]!, parameter)])),
      ];
    });
    for (const [parameter, gradient] of this.#views) parameter.setGradientBuffer(gradient);
  }

  fillZeros(parameter: Tensor): void {
    const gradient = this.#views.get(parameter)!;
    fillInPlace(gradient, 0);
    parameter.grad = keep(alias(gradient));
  }

  average(group: ProcessGroup, context: Context): Work {
    const displaced = this.parameters.filter((parameter) => !this.#isHome(parameter));
    for (const parameter of displaced) this.#takeOut(parameter);
    for (const parameter of displaced) this.#bringHome(parameter);
    return group.allReduce(this.buffer, { op: 'average', ...context });
  }

  /** A gradient that the user has set, or that was there before the bucket, lies elsewhere, or in another order. */
  #isHome(parameter: Tensor): boolean {
    const [home, gradient] = [this.#views.get(parameter)!, gradientOf(parameter)];
    return gradient.storage === home.storage && gradient.offset === home.offset && gradient.isContiguous;
  }

  /** What lies at another's place of the buffer would be gone once that one has been brought home. */
  #takeOut(parameter: Tensor): void {
    const gradient = gradientOf(parameter);
    if (gradient.storage !== this.buffer.storage) return;
    parameter.grad = keep(copy(gradient));
    gradient.dispose();
  }

  #bringHome(parameter: Tensor): void {
    const [home, gradient] = [this.#views.get(parameter)!, gradientOf(parameter)];
    copyInPlace(home, gradient);
    this.copiedBytes += home.byteLength;
    gradient.dispose();
    parameter.grad = keep(alias(home));
  }

  dispose(): void {
    for (const [parameter, gradient] of this.#views) {
      parameter.setGradientBuffer(null);
      gradient.dispose();
    }
    this.buffer.dispose();
  }
}

/** Throws a RooflineError (code GRADIENT) where a hook of the user's has taken it away. */
function gradientOf({ grad, shape }: Tensor): Tensor {
  if (grad !== null) return grad;
  throw new RooflineError(
    'GRADIENT',
    `DistributedDataParallel: the gradient of a parameter ${formatShape(shape)} was taken away before it was reduced; ` +
      'use gradients after backward() has returned.',
  );
}
