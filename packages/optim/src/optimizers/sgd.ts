import { RooflineError, type Tensor, checkFlag, dependOn, keep, zerosLike } from '@roofline/tensor-core';
import { type SGDOptions, checkNotNegative } from './hyperparameters.ts';
import { type OptimizerState, OptimizerStateError, checkState, copyState } from './optimizer-state.ts';
import { type OptimizedParameters, Optimizer, type OptimizerKind, type ParameterGroup } from './optimizer.ts';
import { sgdMomentumUpdate, sgdUpdate } from './sgd-update.ts';

const kind: OptimizerKind<SGDOptions> = {
  name: 'SGD',
  defaults: { learningRate: 1e-3, momentum: 0, weightDecay: 0, nesterov: false },
  check: checkHyperparameters,
  skipsOnDevice: true,
};

/**
 * Stochastic gradient descent with momentum, with the arithmetic of torch.optim.SGD (no dampening).
 * Throws a DTypeError for parameters that are not float32, a RooflineError for hyperparameters out of range (code
 * RANGE) and for those that do not exist (code OPTION).
 */
export class SGD extends Optimizer<SGDOptions> {
  readonly #buffers = new Map<Tensor, Tensor>();

  constructor(parameters: OptimizedParameters<SGDOptions>, options: Partial<SGDOptions> = {}) {
    super(kind, parameters, options);
  }

  protected override update(
    group: ParameterGroup<SGDOptions>,
    parameters: readonly Tensor[],
    skip: Tensor | null,
  ): void {
    const gradients = parameters.map(({ grad }) => grad!);
    const next = nextOptions(group);
    if (group.momentum === 0) return sgdUpdate([parameters, gradients], skip, next);
    const buffers = parameters.map((parameter) => this.#bufferOf(parameter));
    sgdMomentumUpdate([parameters, buffers, gradients], skip, next);
  }

  #bufferOf(parameter: Tensor): Tensor {
    let buffer = this.#buffers.get(parameter);
    if (!buffer) this.#buffers.set(parameter, (buffer = keep(zerosLike(parameter))));
    return buffer;
  }

  /** Momentum buffers as `momentum_buffer.N`, of those parameters that have one. They are live. */
  override stateDict(): OptimizerState {
    this.assertAlive('stateDict');
    const tensors: Record<string, Tensor> = {};
    this.parameters().forEach((parameter, i) => {
      const buffer = this.#buffers.get(parameter);
      if (buffer) tensors[bufferName(i)] = buffer.detach();
    });
    return { tensors, metadata: { optimizer: 'SGD' } };
  }

  override loadStateDict(state: OptimizerState): void {
    this.assertAlive('loadStateDict');
    checkState('SGD', state);
    if (state.metadata.optimizer !== 'SGD') {
      throw new OptimizerStateError(
        `SGD.loadStateDict: the state is not that of an SGD (metadata: ${JSON.stringify(state.metadata)}). Load the state of ` +
          'an optimizer of the same parameters.',
      );
    }
    const named = this.parameters().map((parameter, i) => [bufferName(i), parameter] as const);
    const buffered = new Map(named.filter(([name]) => name in state.tensors));
    const copies = copyState('SGD', state, buffered);
    this.freeState();
    for (const [name, parameter] of buffered) this.#buffers.set(parameter, copies.get(name)!);
  }

  protected override freeState(): void {
    for (const buffer of this.#buffers.values()) buffer.dispose();
    this.#buffers.clear();
  }
}

/** The hyperparameters of each run, which may change from run to run, except that others would need another kernel. */
function nextOptions(group: ParameterGroup<SGDOptions>): () => SGDOptions {
  const hasMomentum = dependOn(() => group.momentum !== 0);
  const nesterov = dependOn(() => group.nesterov);
  return () => {
    if (hasMomentum !== (group.momentum !== 0) || nesterov !== group.nesterov) {
      throw new RooflineError(
        'OPTION',
        `SGD: momentum ${group.momentum}, nesterov ${group.nesterov} wants another kernel than the compiled program has, ` +
          'which began or ended its momentum or Nesterov; compile the step anew.',
      );
    }
    return group;
  };
}

function bufferName(parameter: number): string {
  return `momentum_buffer.${parameter}`;
}

function checkHyperparameters({ learningRate, momentum, weightDecay, nesterov }: SGDOptions): void {
  checkNotNegative('SGD', { learningRate, momentum, weightDecay });
  checkFlag('SGD', 'nesterov', nesterov);
  if (nesterov && momentum === 0) {
    throw new RooflineError('RANGE', 'SGD: nesterov looks ahead along a momentum; give one.');
  }
}
