import {
  RooflineError,
  type Tensor,
  checkNumber,
  dependOn,
  describeValue,
  full,
  keep,
  zerosLike,
} from '@roofline/tensor-core';
import { adamwCountedUpdate, adamwUpdate } from './adamw-update.ts';
import { refuseReplays } from '../refuse-replays.ts';
import { type AdamWOptions, checkNotNegative } from './hyperparameters.ts';
import { type OptimizerState, OptimizerStateError, checkState, copyState } from './optimizer-state.ts';
import { type SharedCount, StepCount, areEqual, isWhole, shareCount } from './step-count.ts';
import { type OptimizedParameters, Optimizer, type OptimizerKind, type ParameterGroup } from './optimizer.ts';

const kind: OptimizerKind<AdamWOptions> = {
  name: 'AdamW',
  // All groups that give none have this one list.
  defaults: { learningRate: 1e-3, betas: Object.freeze([0.9, 0.999] as const), eps: 1e-8, weightDecay: 0.01 },
  check: checkHyperparameters,
  skipsOnDevice: true,
};

interface Moments {
  readonly first: Tensor;
  readonly second: Tensor;
  /**
   * Steps made: the host's count, until a step was made that the device may have skipped. From then on the device alone
   * knows: a float64 scalar.
   */
  steps: StepCount | Tensor;
  /** Whether a state that was given has their steps, and may be asked once the optimizer has released them. */
  isTold: boolean;
}

/**
 * Adam with decoupled weight decay (Loshchilov & Hutter 2019), with the defaults and the arithmetic of
 * torch.optim.AdamW. On a GPU each group is updated by one kernel for every 88 of its tensors.
 *
 * `parameters` are tensors, or groups with hyperparameters of their own. Throws a DTypeError for parameters
 * that are not float32, a RooflineError for hyperparameters out of range (code RANGE) and for those that do not exist
 * (code OPTION).
 *
 * @example
 * ```ts
 * import { AdamW } from '@roofline/optim';
 * import { mul, scope, sum, tensor } from '@roofline/tensor-core';
 *
 * const x = tensor([1, -2], { requiresGrad: true });
 * const optimizer = new AdamW([x], { learningRate: 0.1 });
 * for (let step = 0; step < 3; step++) {
 *   scope(() => sum(mul(x, x)).backward());
 *   optimizer.step();
 *   optimizer.zeroGrad();
 * }
 * console.log(x.toArray());
 * ```
 */
export class AdamW extends Optimizer<AdamWOptions> {
  readonly #moments = new Map<Tensor, Moments>();

  constructor(parameters: OptimizedParameters<AdamWOptions>, options: Partial<AdamWOptions> = {}) {
    super(kind, parameters, options);
  }

  protected override update(
    group: ParameterGroup<AdamWOptions>,
    parameters: readonly Tensor[],
    skip: Tensor | null,
  ): void {
    const counted: Tensor[] = [];
    // The bias correction depends on a parameter's own number of steps; those that had no gradient lag behind.
    const bySteps = new Map<number, Tensor[]>();
    for (const parameter of parameters) {
      const moments = this.#momentsOf(parameter);
      if (skip) countOnDevice(moments);
      const { steps } = moments;
      if (!(steps instanceof StepCount)) counted.push(parameter);
      else if (!bySteps.get(steps.made)?.push(parameter)) bySteps.set(steps.made, [parameter]);
    }
    if (counted.length > 0) this.#updateCounted(group, counted, skip);
    const counts = [...bySteps.values()].map((updated) => this.#updateOfOneCount(group, updated));
    // A compiled step is used while these parameters make their steps together; others it would record again.
    dependOn(() => counts.every((together) => together.every(isWhole) && areEqual(together)));
  }

  #updateCounted(
    group: ParameterGroup<AdamWOptions>,
    parameters: readonly Tensor[],
    skip: Tensor | null,
  ): void {
    const [p, m, v, g] = this.#listsOf(parameters);
    const steps = parameters.map((parameter) => this.#moments.get(parameter)!.steps as Tensor);
    adamwCountedUpdate([p, m, v, steps, g], skip, () => group);
  }

  /** Gives the counts of the kernels' parameters, as they are from now on. */
  #updateOfOneCount(group: ParameterGroup<AdamWOptions>, parameters: readonly Tensor[]): SharedCount[] {
    const moments = parameters.map((parameter) => this.#moments.get(parameter)!);
    const counts = new Map<number, SharedCount>();
    let last: StepCount | null = null;
    try {
      adamwUpdate(this.#listsOf(parameters), null, (from, to) => {
        let shared = counts.get(from);
        if (!shared || !isWhole(shared)) counts.set(from, (shared = shareCount(moments.slice(from, to))));
        last = shared.count;
        return { ...group, step: ++last.made };
      });
    } catch (error) {
      if (last) (last as StepCount).made--;
      throw error;
    }
    return [...counts.values()];
  }

  #listsOf(parameters: readonly Tensor[]): [p: readonly Tensor[], m: Tensor[], v: Tensor[], g: Tensor[]] {
    const moments = parameters.map((parameter) => this.#moments.get(parameter)!);
    const [first, second] = [moments.map((moment) => moment.first), moments.map((moment) => moment.second)];
    return [parameters, first, second, parameters.map(({ grad }) => grad!)];
  }

  #momentsOf(parameter: Tensor): Moments {
    let moments = this.#moments.get(parameter);
    if (!moments) {
      moments = {
        first: keep(zerosLike(parameter)),
        second: keep(zerosLike(parameter)),
        steps: new StepCount(0),
        isTold: false,
      };
      this.#moments.set(parameter, moments);
    }
    return moments;
  }

  /**
   * Moments as `exp_avg.N` and `exp_avg_sq.N`, PyTorch's names, and the steps of each parameter as a JSON list. All of it is
   * live. Reading `metadata.steps` waits for the device where a gradient scaler made steps, and is a CompileError in a
   * compiled function, whose replays would not read it.
   */
  override stateDict(): OptimizerState {
    this.assertAlive('stateDict');
    const tensors: Record<string, Tensor> = {};
    const held = this.parameters().map((parameter, i) => {
      const moments = this.#moments.get(parameter);
      if (!moments) return null;
      moments.isTold = true;
      tensors[firstName(i)] = moments.first.detach();
      tensors[secondName(i)] = moments.second.detach();
      return moments;
    });
    const metadata = {
      optimizer: 'AdamW',
      // Read when it is asked for, as the moments are: text of now would be of another step than they.
      get steps(): string {
        refuseReplays('the steps in the state of AdamW are read');
        return JSON.stringify(held.map((moments) => (moments ? stepsOf(moments) : 0)));
      },
    };
    return { tensors, metadata };
  }

  override loadStateDict(state: OptimizerState): void {
    this.assertAlive('loadStateDict');
    checkState('AdamW', state);
    const parameters = this.parameters();
    const steps = readSteps(state, parameters.length);
    // Moments without a step are of a parameter whose steps were all skipped.
    const hasMoments = (i: number) =>
      steps[i]! > 0 || [firstName(i), secondName(i)].some((name) => Object.hasOwn(state.tensors, name));
    const held = parameters.flatMap((parameter, i) => (hasMoments(i) ? [{ parameter, i }] : []));
    const names = held.flatMap(({ parameter, i }) => [
      [firstName(i), parameter] as const,
      [secondName(i), parameter] as const,
    ]);
    const copies = copyState('AdamW', state, new Map(names));
    this.freeState();
    for (const { parameter, i } of held) {
      const [first, second] = [copies.get(firstName(i))!, copies.get(secondName(i))!];
      this.#moments.set(parameter, { first, second, steps: new StepCount(steps[i]!), isTold: false });
    }
  }

  protected override freeState(): void {
    for (const moments of this.#moments.values()) {
      const { first, second, steps } = moments;
      if (moments.isTold) moments.steps = new StepCount(stepsOf(moments));
      first.dispose();
      second.dispose();
      if (!(steps instanceof StepCount)) steps.dispose();
    }
    this.#moments.clear();
  }
}

/** Lets the device count the steps from here on. */
function countOnDevice(moments: Moments): void {
  const { steps } = moments;
  if (!(steps instanceof StepCount)) return;
  const { device } = moments.first;
  moments.steps = keep(full([], steps.made, { dtype: 'float64', device }));
  steps.members--;
}

function stepsOf({ steps }: Moments): number {
  return steps instanceof StepCount ? steps.made : steps.item();
}

function firstName(parameter: number): string {
  return `exp_avg.${parameter}`;
}

function secondName(parameter: number): string {
  return `exp_avg_sq.${parameter}`;
}

function readSteps({ metadata }: OptimizerState, count: number): number[] {
  const steps = metadata.optimizer === 'AdamW' ? parseSteps(metadata.steps) : null;
  if (steps?.length !== count) {
    throw new OptimizerStateError(
      `AdamW.loadStateDict: the state is not that of an AdamW of ${count} parameters (metadata: ${JSON.stringify(metadata)}). ` +
        'Load the state of an optimizer of the same parameters.',
    );
  }
  return steps;
}

/** Null for text that is not a JSON list of counts. */
function parseSteps(text: string | undefined): number[] | null {
  try {
    const counts: unknown = JSON.parse(text ?? '');
    return Array.isArray(counts) && counts.every(isCount) ? counts : null;
  } catch {
    return null;
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function checkHyperparameters({ learningRate, betas, eps, weightDecay }: AdamWOptions): void {
  checkNotNegative('AdamW', { learningRate, eps, weightDecay });
  if (!Array.isArray(betas) || betas.length !== 2) {
    throw new RooflineError(
      'RANGE',
      `AdamW: betas must be a list of two numbers, not ${describeValue(betas)}.`,
    );
  }
  for (const beta of betas) {
    checkNumber('AdamW', 'each of betas', beta, 'a number in [0, 1)', (value) => value >= 0 && value < 1);
  }
}
