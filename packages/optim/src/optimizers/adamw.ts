import {
  RooflineError,
  type Tensor,
  checkNumber,
  describeValue,
  keep,
  zerosLike,
} from '@roofline/tensor-core';
import { adamwUpdate } from './adamw-update.ts';
import { checkNotNegative } from './hyperparameters.ts';
import { type OptimizerState, OptimizerStateError, checkState, copyState } from './optimizer-state.ts';
import { type OptimizedParameters, Optimizer, type OptimizerKind, type ParameterGroup } from './optimizer.ts';

/** AdamW's hyperparameters, of all parameters or of a group. */
export interface AdamWOptions {
  learningRate: number;
  /** How much of the first and second moments a step keeps. */
  betas: readonly [number, number];
  /** Added to the root of the second moment. */
  eps: number;
  /** The share of a parameter that a step takes away, times the learning rate. */
  weightDecay: number;
}

const kind: OptimizerKind<AdamWOptions> = {
  name: 'AdamW',
  defaults: { learningRate: 1e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.01 },
  check: checkHyperparameters,
};

interface Moments {
  readonly first: Tensor;
  readonly second: Tensor;
  /** Steps made. */
  steps: number;
}

/**
 * Adam with decoupled weight decay (Loshchilov & Hutter 2019), with the defaults and the arithmetic of
 * torch.optim.AdamW. On a GPU each group is updated by one kernel for every 88 of its tensors.
 *
 * `parameters` are tensors, or groups with hyperparameters of their own. Throws a DTypeError for parameters
 * that are not float32, a RooflineError for hyperparameters out of range (code RANGE) and for those that do not exist
 * (code OPTION).
 */
export class AdamW extends Optimizer<AdamWOptions> {
  readonly #moments = new Map<Tensor, Moments>();

  constructor(parameters: OptimizedParameters<AdamWOptions>, options: Partial<AdamWOptions> = {}) {
    super(kind, parameters, options);
  }

  protected override update(group: ParameterGroup<AdamWOptions>, parameters: readonly Tensor[]): void {
    for (const [steps, updated] of this.#bySteps(parameters)) {
      const moments = updated.map((parameter) => this.#momentsOf(parameter));
      const lists = [
        updated,
        moments.map(({ first }) => first),
        moments.map(({ second }) => second),
        updated.map(({ grad }) => grad!),
      ];
      adamwUpdate(lists, [], { ...group, step: steps + 1 });
      for (const moment of moments) moment.steps++;
    }
  }

  // The bias correction depends on a parameter's own number of steps; those that had no gradient lag behind.
  #bySteps(parameters: readonly Tensor[]): Map<number, Tensor[]> {
    return Map.groupBy(parameters, (parameter) => this.#moments.get(parameter)?.steps ?? 0);
  }

  #momentsOf(parameter: Tensor): Moments {
    let moments = this.#moments.get(parameter);
    if (!moments) {
      moments = { first: keep(zerosLike(parameter)), second: keep(zerosLike(parameter)), steps: 0 };
      this.#moments.set(parameter, moments);
    }
    return moments;
  }

  /** Moments as `exp_avg.N` and `exp_avg_sq.N`, PyTorch's names, and the steps of each parameter. */
  override stateDict(): OptimizerState {
    this.assertAlive('stateDict');
    const tensors: Record<string, Tensor> = {};
    const steps = this.parameters().map((parameter, i) => {
      const moments = this.#moments.get(parameter);
      if (!moments) return 0;
      tensors[firstName(i)] = moments.first.detach();
      tensors[secondName(i)] = moments.second.detach();
      return moments.steps;
    });
    return { tensors, metadata: { optimizer: 'AdamW', steps: JSON.stringify(steps) } };
  }

  override loadStateDict(state: OptimizerState): void {
    this.assertAlive('loadStateDict');
    checkState('AdamW', state);
    const parameters = this.parameters();
    const steps = readSteps(state, parameters.length);
    const stepped = parameters.flatMap((parameter, i) => (steps[i]! > 0 ? [{ parameter, i }] : []));
    const names = stepped.flatMap(({ parameter, i }) => [
      [firstName(i), parameter] as const,
      [secondName(i), parameter] as const,
    ]);
    const copies = copyState('AdamW', state, new Map(names));
    this.freeState();
    for (const { parameter, i } of stepped) {
      const [first, second] = [copies.get(firstName(i))!, copies.get(secondName(i))!];
      this.#moments.set(parameter, { first, second, steps: steps[i]! });
    }
  }

  protected override freeState(): void {
    for (const { first, second } of this.#moments.values()) {
      first.dispose();
      second.dispose();
    }
    this.#moments.clear();
  }
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
      `AdamW.loadStateDict: the state is not that of an AdamW of ${count} parameters (metadata: ${JSON.stringify(metadata)}).`,
    );
  }
  return steps;
}

/** Null for text that is no list of counts. */
function parseSteps(text = ''): number[] | null {
  if (!/^\[(\d+(,\d+)*)?\]$/.test(text)) return null;
  const counts = text.slice(1, -1).split(',').filter(Boolean).map(Number);
  return counts.every(Number.isSafeInteger) ? counts : null;
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
