import { type Tensor, copyInPlace, keep, zerosLike } from '@roofline/tensor-core';
import {
  type OptimizedParameters,
  Optimizer,
  type OptimizerKind,
  type OptimizerState,
  OptimizerStateError,
  type ParameterGroup,
  stateTensor,
  withGradients,
} from './optimizer.ts';
import { sgdMomentumUpdate, sgdUpdate } from './sgd-update.ts';

export interface SGDOptions {
  learningRate: number;
  /** How much of the running direction a step keeps; 0 keeps none and needs no memory. */
  momentum: number;
  /** Added to the gradient, times the parameter. */
  weightDecay: number;
  /** Look ahead along the momentum (Nesterov 1983). */
  nesterov: boolean;
}

const kind: OptimizerKind<SGDOptions> = {
  name: 'SGD',
  defaults: { learningRate: 1e-3, momentum: 0, weightDecay: 0, nesterov: false },
  check: checkOptions,
};

/**
 * Stochastic gradient descent with momentum, with the arithmetic of torch.optim.SGD (no dampening).
 * Throws a DTypeError for parameters that are not float32, and a RangeError for hyperparameters out of range.
 */
export class SGD extends Optimizer<SGDOptions> {
  readonly #buffers = new Map<Tensor, Tensor>();

  constructor(parameters: OptimizedParameters<SGDOptions>, options: Partial<SGDOptions> = {}) {
    super(kind, parameters, options);
  }

  protected override update(group: ParameterGroup<SGDOptions>): void {
    const parameters = withGradients('SGD', group.parameters);
    if (parameters.length === 0) return;
    const gradients = parameters.map(({ grad }) => grad!);
    if (group.momentum === 0) return sgdUpdate([parameters, gradients], [], group);
    const buffers = parameters.map((parameter) => this.#bufferOf(parameter));
    sgdMomentumUpdate([parameters, buffers, gradients], [], group);
  }

  #bufferOf(parameter: Tensor): Tensor {
    let buffer = this.#buffers.get(parameter);
    if (!buffer) this.#buffers.set(parameter, (buffer = keep(zerosLike(parameter))));
    return buffer;
  }

  /** Momentum buffers as `momentum_buffer.N`. */
  override stateDict(): OptimizerState {
    const tensors: Record<string, Tensor> = {};
    this.parameters().forEach((parameter, i) => {
      const buffer = this.#buffers.get(parameter);
      if (buffer) tensors[`momentum_buffer.${i}`] = buffer;
    });
    return { tensors, metadata: { optimizer: 'SGD' } };
  }

  override loadStateDict(state: OptimizerState): void {
    if (state.metadata.optimizer !== 'SGD') {
      throw new OptimizerStateError(
        `SGD.loadStateDict: the state is not that of an SGD (metadata: ${JSON.stringify(state.metadata)}).`,
      );
    }
    const loaded = this.parameters().flatMap((parameter, i) => {
      const name = `momentum_buffer.${i}`;
      return name in state.tensors ? [{ parameter, source: stateTensor(state, name, parameter) }] : [];
    });
    this.dispose();
    for (const { parameter, source } of loaded) copyInPlace(this.#bufferOf(parameter), source);
  }

  override dispose(): void {
    for (const buffer of this.#buffers.values()) buffer.dispose();
    this.#buffers.clear();
  }
}

function checkOptions({ learningRate, momentum, weightDecay, nesterov }: SGDOptions): void {
  if (!(learningRate >= 0) || !(momentum >= 0) || !(weightDecay >= 0)) {
    throw new RangeError(
      `SGD: learningRate ${learningRate}, momentum ${momentum} and weightDecay ${weightDecay} must not be negative.`,
    );
  }
  if (nesterov && momentum === 0)
    throw new RangeError('SGD: nesterov looks ahead along a momentum; give one.');
}
