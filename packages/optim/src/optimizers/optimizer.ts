import {
  DTypeError,
  DeviceError,
  DisposedError,
  RooflineError,
  Tensor,
  checkFunction,
  checkOptions,
  dependOn,
  describeValue,
  formatShape,
  noGrad,
  range,
  requireTensor,
  scope,
} from '@roofline/tensor-core';
import { refuseReplays } from '../refuse-replays.ts';
import { settableBetweenSteps, withoutUndefined } from './hyperparameters.ts';
import { withGradients } from '../gradients/gradients.ts';
import type { OptimizerState } from './optimizer-state.ts';

/** Parameters that share their hyperparameters; what a group leaves out, the optimizer's options give. */
export type ParameterGroupOptions<H> = { readonly parameters: Iterable<Tensor> } & Partial<H>;

/** A group as the optimizer holds it. Hyperparameters may be changed between steps. */
export type ParameterGroup<H> = { readonly parameters: readonly Tensor[] } & H;

/** What an optimizer updates: tensors, or groups of them with hyperparameters of their own. */
export type OptimizedParameters<H> = Iterable<Tensor> | Iterable<ParameterGroupOptions<H>>;

/** What sets an optimizer apart before its first step. */
export interface OptimizerKind<H> {
  readonly name: string;
  /** All options, with their values where none are given. */
  readonly defaults: H;
  /** Throws a RooflineError for hyperparameters out of range. */
  check(options: H): void;
  /** Whether its `update` leaves everything as it is where `skip` is not 0, as `stepUnless` wants. Default false. */
  readonly skipsOnDevice?: boolean;
}

function ignore(): void {}

/** What all optimizers share: groups of parameters, what surrounds a step, and disposal. */
export abstract class Optimizer<H extends { learningRate: number }> {
  /** In a compiled function, setting a hyperparameter throws a CompileError: replays would not set it. */
  readonly groups: readonly ParameterGroup<H>[];
  readonly #groups: readonly ParameterGroup<H>[];
  readonly #kind: OptimizerKind<H>;
  #disposed = false;
  readonly #readDisposed = () => this.#disposed;
  readonly #readLearningRate = () => this.#groups[0]!.learningRate;
  readonly #checkGroups = () => this.#groups.forEach((group) => this.#kind.check(group));

  /** Throws a RooflineError (code OPTION) for options that do not exist, and what `kind.check` throws. */
  constructor(kind: OptimizerKind<H>, parameters: OptimizedParameters<H>, options: Partial<H>) {
    this.#kind = kind;
    const known = Object.keys(kind.defaults);
    checkOptions(kind.name, options, known);
    const groups = groupsOf(kind.name, parameters);
    for (const group of groups) checkOptions(`${kind.name}: a group`, group, ['parameters', ...known]);
    this.#groups = groups.map((group) => ({
      ...kind.defaults,
      ...withoutUndefined(options),
      ...withoutUndefined(group),
      parameters: [...group.parameters],
    }));
    this.groups = this.#groups.map(settableBetweenSteps);
    checkParameters(kind.name, this.parameters());
    this.#groups.forEach((group) => kind.check(group));
  }

  /** All parameters, group by group. */
  parameters(): Tensor[] {
    return this.#groups.flatMap((group) => group.parameters);
  }

  /**
   * Sets the learning rate of all groups. Throws a RooflineError (code RANGE) for one out of range, and a CompileError in a
   * compiled function, whose replays would not set it.
   */
  set learningRate(learningRate: number) {
    for (const group of this.#groups) this.#kind.check({ ...group, learningRate });
    refuseReplays('a learning rate is set');
    for (const group of this.#groups) (group as { learningRate: number }).learningRate = learningRate;
  }

  /** The learning rate of the first group. A compiled function that reads it has a program for each. */
  get learningRate(): number {
    return dependOn(this.#readLearningRate);
  }

  /** Forgets all gradients; their memory is given back. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) {
      parameter.grad?.dispose();
      parameter.grad = null;
    }
  }

  /**
   * Updates every parameter that has a gradient, in the range `optimizer`. Throws before anything is written if
   * the optimizer, a parameter or a gradient has been disposed (DisposedError), if a gradient is not
   * contiguous float32 (DTypeError), or of another shape (ShapeError) or device (DeviceError) than its parameter, or if a group
   * has been given a hyperparameter out of range (RooflineError, code RANGE).
   *
   * `onGroupUpdated` is called with the index of each group after its update, before that of the next one: what is updated can be sent
   * meanwhile.
   */
  step(onGroupUpdated: (group: number) => void = ignore): void {
    this.assertAlive('step');
    checkFunction(`${this.#kind.name}.step`, 'the listener', onGroupUpdated);
    this.#step(null, onGroupUpdated);
  }

  /**
   * The same where `skip` is 0; otherwise nothing changes, and the step does not count. The device decides; the host
   * does not wait, and does not learn the outcome. `skip` is a float32 scalar on the parameters' device. Throws what
   * `step` throws, a DTypeError or DeviceError for another `skip`, and a RooflineError (code OPTIMIZER) where a user's
   * optimizer cannot do this.
   */
  stepUnless(skip: Tensor, onGroupUpdated: (group: number) => void = ignore): void {
    this.assertAlive('stepUnless');
    const { name, skipsOnDevice } = this.#kind;
    requireTensor(`${name}.stepUnless`, skip);
    checkFunction(`${name}.stepUnless`, 'the listener', onGroupUpdated);
    if (skip.dtype !== 'float32' || skip.shape.length > 0) {
      throw new DTypeError(
        `${name}.stepUnless: takes a float32 scalar, not ${formatShape(skip.shape)} ${skip.dtype}.`,
      );
    }
    if (!skipsOnDevice) {
      throw new RooflineError(
        'OPTIMIZER',
        `${name}.stepUnless: its update cannot be skipped on the device; let it do nothing where the tensor "skip" is not 0, ` +
          'and say skipsOnDevice in its OptimizerKind.',
      );
    }
    this.#checkDeviceOf(skip);
    this.#step(skip, onGroupUpdated);
  }

  #checkDeviceOf(skip: Tensor): void {
    const elsewhere = this.parameters().find(({ device }) => device !== skip.device);
    if (!elsewhere) return;
    throw new DeviceError(
      `${this.#kind.name}.stepUnless: skip is on ${skip.device.label}, and a parameter ${formatShape(elsewhere.shape)} on ` +
        `${elsewhere.device.label}; move skip with .to(device), or make an optimizer for each device.`,
    );
  }

  #step(skip: Tensor | null, onGroupUpdated: (group: number) => void): void {
    // They may have been set since, one by one. A compiled step asks before each run.
    dependOn(this.#checkGroups);
    range('optimizer', () =>
      noGrad(() =>
        scope(() => {
          const updated = this.#groups.map(({ parameters }) => withGradients(this.#kind.name, parameters));
          this.#groups.forEach((group, i) => {
            // An op runs on one device.
            for (const parameters of Map.groupBy(updated[i]!, ({ device }) => device).values())
              this.update(group, parameters, skip);
            onGroupUpdated(i);
          });
        }),
      ),
    );
  }

  /**
   * Updates those parameters of a group on one device that have gradients, unless there is a `skip` that is not 0;
   * tensors made here are freed unless kept.
   */
  protected abstract update(
    group: ParameterGroup<H>,
    parameters: readonly Tensor[],
    skip: Tensor | null,
  ): void;

  /**
   * The optimizer's own tensors, by handles that the caller disposes, and its counters. Like PyTorch's, the state is
   * live and takes no memory: each step changes it, counters along with tensors, for the parameters that it holds,
   * which are those that have made a step by now. Loading another state, or `dispose`, leaves it as it is. To keep a
   * moment of the training, save the state, or load it into another optimizer, which copies it.
   */
  abstract stateDict(): OptimizerState;

  /**
   * Continues from a copy of a state, which may lie on another device. Throws an OptimizerStateError if it is of
   * other parameters, and a CompileError in a compiled function, whose replays would not load it; the optimizer's own
   * state is then as it was.
   */
  abstract loadStateDict(state: OptimizerState): void;

  /** Frees the tensors that `stateDict` lists. */
  protected abstract freeState(): void;

  /** Frees the optimizer's own tensors; it makes no further step. Disposing twice is harmless. */
  dispose(): void {
    this.#disposed = true;
    this.freeState();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /**
   * Throws a DisposedError after `dispose`: a step would begin again from no state. A compiled step asks before each
   * run, because an optimizer that holds no tensors leaves none whose absence it could notice.
   */
  protected assertAlive(method: string): void {
    if (!dependOn(this.#readDisposed)) return;
    throw new DisposedError(
      `${this.#kind.name}.${method}: the optimizer was used after it had been disposed; make a new one.`,
    );
  }
}

// Tensors given bare form one group, with the optimizer's own hyperparameters.
function groupsOf<H>(name: string, parameters: OptimizedParameters<H>): { parameters: Iterable<Tensor> }[] {
  if (!isIterable(parameters)) throw noParameters(name, parameters);
  const groups: { parameters: Iterable<Tensor> }[] = [];
  const bare: Tensor[] = [];
  for (const item of parameters) {
    if (item instanceof Tensor) bare.push(item);
    else if (isIterable((item as ParameterGroupOptions<H> | undefined)?.parameters)) groups.push(item);
    else throw noParameters(name, item);
  }
  return bare.length > 0 ? [...groups, { parameters: bare }] : groups;
}

/** Whether `value` is a list or another object that can be walked. */
export function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function noParameters(name: string, got: unknown): RooflineError {
  return new RooflineError(
    'PARAMETERS',
    `${name}: takes tensors, or groups { parameters, ...hyperparameters }, got ${describeValue(got)}; ` +
      'pass model.parameters().',
  );
}

function checkParameters(name: string, parameters: readonly Tensor[]): void {
  if (parameters.length === 0) {
    throw new RooflineError('PARAMETERS', `${name}: there are no parameters to update.`);
  }
  if (new Set(parameters).size !== parameters.length) {
    throw new RooflineError(
      'PARAMETERS',
      `${name}: a parameter appears twice; each belongs to one group, once.`,
    );
  }
  for (const parameter of parameters) {
    if (!(parameter instanceof Tensor)) throw noParameters(name, parameter);
    parameter.assertAlive(name);
    if (parameter.dtype !== 'float32') {
      throw new DTypeError(
        `${name}: a parameter ${formatShape(parameter.shape)} is ${parameter.dtype}; optimizers update float32 ` +
          'parameters. Keep them in float32 and run the model in a lower precision.',
      );
    }
    if (!parameter.isLeaf || !parameter.isContiguous) {
      throw new RooflineError(
        'PARAMETERS',
        `${name}: a parameter ${formatShape(parameter.shape)} must be a contiguous leaf.`,
      );
    }
  }
}
