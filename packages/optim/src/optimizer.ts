import {
  DTypeError,
  RooflineError,
  type Tensor,
  formatShape,
  noGrad,
  range,
  scope,
} from '@roofline/tensor-core';

/** Parameters that share their hyperparameters; what a group leaves out, the optimizer's options give. */
export type ParameterGroupOptions<H> = { readonly parameters: Iterable<Tensor> } & Partial<H>;

/** A group as the optimizer holds it. Hyperparameters may be changed between steps. */
export type ParameterGroup<H> = { readonly parameters: readonly Tensor[] } & H;

/**
 * What is needed to continue a run: tensors and text, as safetensors files hold them. Parameters are numbered
 * through all groups, in order.
 */
export interface OptimizerState {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A state that does not belong to this optimizer. */
export class OptimizerStateError extends RooflineError {
  constructor(message: string) {
    super('OPTIMIZER_STATE', message);
  }
}

/** What an optimizer updates: tensors, or groups of them with hyperparameters of their own. */
export type OptimizedParameters<H> = Iterable<Tensor> | Iterable<ParameterGroupOptions<H>>;

/** What sets an optimizer apart before its first step. */
export interface OptimizerKind<H> {
  readonly name: string;
  readonly defaults: H;
  /** Throws a RangeError for hyperparameters out of range. */
  check(options: H): void;
}

/** What all optimizers share: groups of parameters, and how a step is framed. */
export abstract class Optimizer<H extends { learningRate: number }> {
  readonly groups: readonly ParameterGroup<H>[];

  constructor(kind: OptimizerKind<H>, parameters: OptimizedParameters<H>, options: Partial<H>) {
    this.groups = groupsOf([...parameters]).map((group) => ({
      ...kind.defaults,
      ...options,
      ...group,
      parameters: [...group.parameters],
    }));
    checkParameters(kind.name, this.parameters());
    this.groups.forEach((group) => kind.check(group));
  }

  /** All parameters, group by group. */
  parameters(): Tensor[] {
    return this.groups.flatMap((group) => group.parameters);
  }

  /** Sets the learning rate of all groups. */
  set learningRate(learningRate: number) {
    for (const group of this.groups) (group as { learningRate: number }).learningRate = learningRate;
  }

  /** The learning rate of the first group. */
  get learningRate(): number {
    return this.groups[0]!.learningRate;
  }

  /** Forgets all gradients; their memory is given back. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) {
      parameter.grad?.dispose();
      parameter.grad = null;
    }
  }

  /** Updates every parameter that has a gradient, in the range `optimizer`. */
  step(): void {
    range('optimizer', () => noGrad(() => scope(() => this.groups.forEach((group) => this.update(group)))));
  }

  /** Updates one group; tensors made here are freed unless kept. */
  protected abstract update(group: ParameterGroup<H>): void;

  /** The optimizer's own tensors, live, and its counters. */
  abstract stateDict(): OptimizerState;

  /** Continues from a state. Throws an OptimizerStateError if it is of other parameters. */
  abstract loadStateDict(state: OptimizerState): void;

  /** Frees the optimizer's own tensors. */
  abstract dispose(): void;

  [Symbol.dispose](): void {
    this.dispose();
  }
}

// Tensors given bare form one group, with the optimizer's own hyperparameters.
function groupsOf<H>(
  items: readonly (Tensor | ParameterGroupOptions<H>)[],
): { parameters: Iterable<Tensor> }[] {
  const groups = items.filter((item) => 'parameters' in item);
  const parameters = items.filter((item) => !('parameters' in item)) as Tensor[];
  return parameters.length > 0 ? [...groups, { parameters }] : groups;
}

function checkParameters(name: string, parameters: readonly Tensor[]): void {
  if (parameters.length === 0) throw new RangeError(`${name}: there are no parameters to update.`);
  if (new Set(parameters).size !== parameters.length) {
    throw new RangeError(`${name}: a parameter appears twice; each belongs to one group, once.`);
  }
  for (const parameter of parameters) {
    if (parameter.dtype !== 'float32') {
      throw new DTypeError(
        `${name}: a parameter ${formatShape(parameter.shape)} is ${parameter.dtype}; optimizers update float32 ` +
          'parameters. Keep them in float32 and run the model in a lower precision.',
      );
    }
    if (!parameter.isLeaf || !parameter.isContiguous) {
      throw new RangeError(`${name}: a parameter ${formatShape(parameter.shape)} must be a contiguous leaf.`);
    }
  }
}

/** The parameters that have gradients. Throws where a gradient is of another dtype. */
export function withGradients(name: string, parameters: readonly Tensor[]): Tensor[] {
  const updated = parameters.filter((parameter) => parameter.grad !== null);
  for (const { grad } of updated) {
    if (grad!.dtype !== 'float32' || !grad!.isContiguous) {
      throw new DTypeError(
        `${name}: a gradient ${formatShape(grad!.shape)} is ${grad!.dtype}${grad!.isContiguous ? '' : ', not contiguous'}; ` +
          'it must be contiguous float32.',
      );
    }
  }
  return updated;
}

/** Reads a tensor from a state, checked against the parameter that it belongs to. */
export function stateTensor(state: OptimizerState, name: string, parameter: Tensor): Tensor {
  const tensor = state.tensors[name];
  if (!tensor) throw new OptimizerStateError(`loadStateDict: the state has no tensor "${name}".`);
  if (formatShape(tensor.shape) !== formatShape(parameter.shape)) {
    throw new OptimizerStateError(
      `loadStateDict: "${name}" is ${formatShape(tensor.shape)}, its parameter ${formatShape(parameter.shape)}.`,
    );
  }
  return tensor;
}
