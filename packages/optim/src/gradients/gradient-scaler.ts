import {
  RooflineError,
  type Tensor,
  checkFlag,
  checkNumber,
  checkObject,
  checkOptions,
  describeValue,
  keep,
  mul,
  noGrad,
  range,
  requireTensor,
  scope,
  zeros,
} from '@roofline/tensor-core';
import { gradientsOf } from './gradients.ts';
import { withoutUndefined } from '../optimizers/hyperparameters.ts';
import { OptimizerStateError } from '../optimizers/optimizer-state.ts';
import { unscale } from './unscale.ts';

export interface GradientScalerOptions {
  /** Default 65536. */
  readonly initialScale?: number;
  /** The scale times this after `growthInterval` steps without an overflow. Default 2. */
  readonly growthFactor?: number;
  /** The scale times this after a step with one. Default 0.5. */
  readonly backoffFactor?: number;
  /** Default 2000. */
  readonly growthInterval?: number;
  /** False lets losses and steps through as they are, for training that also runs without float16. Default true. */
  readonly enabled?: boolean;
}

const defaults: Required<GradientScalerOptions> = {
  initialScale: 2 ** 16,
  growthFactor: 2,
  backoffFactor: 0.5,
  growthInterval: 2000,
  enabled: true,
};

function checkOptionValues(options: Required<GradientScalerOptions>): void {
  const check = (name: keyof typeof options, wanted: string, isAllowed: (value: number) => boolean) =>
    checkNumber('GradientScaler', name, options[name] as number, wanted, isAllowed);
  check('initialScale', 'positive and finite', (scale) => scale > 0 && scale < Infinity);
  check('growthFactor', 'finite and above 1', (factor) => factor > 1 && factor < Infinity);
  check('backoffFactor', 'between 0 and 1', (factor) => factor > 0 && factor < 1);
  check('growthInterval', 'a whole number above 0', (steps) => Number.isInteger(steps) && steps > 0);
  checkFlag('GradientScaler', 'enabled', options.enabled);
}

/** What is needed to continue a run. */
export interface GradientScalerState {
  readonly scale: number;
  readonly growthTracker: number;
}

/** What the scaler needs of an optimizer: those of this package, and others that make steps. */
export interface SteppingOptimizer {
  parameters(): Iterable<Tensor>;
  step(): void;
}

function requireOptimizer(owner: string, optimizer: SteppingOptimizer): void {
  if (typeof optimizer?.step === 'function' && typeof optimizer.parameters === 'function') return;
  throw new RooflineError('ARGUMENT', `${owner}: takes an optimizer, not ${describeValue(optimizer)}.`);
}

function outOfOrder(message: string): RooflineError {
  return new RooflineError('ORDER', message);
}

/**
 * Dynamic loss scaling (Micikevicius et al. 2018), with the defaults and the arithmetic of torch.amp.GradScaler:
 * float16 gradients below 6e-8 would vanish, so the loss is scaled up before the backward pass and the gradients
 * down after it; a step whose gradients overflowed is skipped.
 *
 *     scaler.scale(loss).backward();
 *     scaler.step(optimizer);
 *     scaler.update();
 *
 * Throws a RooflineError for factors that would not grow and shrink the scale (code RANGE), and for options that do not
 * exist (code OPTION).
 */
export class GradientScaler {
  readonly #options: Required<GradientScalerOptions>;
  #scale: number;
  /** Steps without an overflow since the scale last changed. */
  #growthTracker = 0;
  /** For each optimizer unscaled since the last update: whether its gradients overflowed, on the device. */
  readonly #foundInf = new Map<SteppingOptimizer, Tensor>();
  readonly #stepped = new Set<SteppingOptimizer>();
  #overflowed = false;

  constructor(options: GradientScalerOptions = {}) {
    checkOptions('GradientScaler', options, Object.keys(defaults));
    this.#options = { ...defaults, ...withoutUndefined(options) };
    checkOptionValues(this.#options);
    const { initialScale } = this.#options;
    this.#scale = initialScale;
  }

  /** The factor of the next loss; 1 where the scaler is not enabled. */
  get currentScale(): number {
    return this.#options.enabled ? this.#scale : 1;
  }

  /** `loss` times the current scale: run backward from it. */
  scale(loss: Tensor): Tensor {
    requireTensor('GradientScaler.scale', loss);
    return this.#options.enabled ? mul(loss, this.#scale) : loss;
  }

  /**
   * Divides the gradients of an optimizer's parameters by the scale, in place; `step` does so itself, but
   * clipping must see true gradients. Throws a RooflineError (code ORDER) if called twice before `update`.
   */
  unscale(optimizer: SteppingOptimizer): void {
    requireOptimizer('GradientScaler.unscale', optimizer);
    if (!this.#options.enabled) return;
    if (this.#foundInf.has(optimizer)) {
      throw outOfOrder(
        'GradientScaler.unscale: the gradients of this optimizer have been unscaled since the last update().',
      );
    }
    const gradients = gradientsOf('GradientScaler.unscale', optimizer.parameters());
    range('optimizer', () =>
      noGrad(() =>
        scope(() => {
          const foundInf = zeros([], { device: gradients[0]!.device });
          unscale(gradients, foundInf, 1 / this.#scale);
          this.#foundInf.set(optimizer, keep(foundInf));
        }),
      ),
    );
  }

  /**
   * Unscales the gradients unless that was done, and makes a step of `optimizer` unless they overflowed; tells
   * whether it did. Waits for the device. Throws a RooflineError (code ORDER) if called twice before `update`.
   */
  step(optimizer: SteppingOptimizer): boolean {
    requireOptimizer('GradientScaler.step', optimizer);
    if (!this.#options.enabled) {
      optimizer.step();
      return true;
    }
    if (this.#stepped.has(optimizer)) {
      throw outOfOrder('GradientScaler.step: this optimizer has made its step since the last update().');
    }
    if (!this.#foundInf.has(optimizer)) this.unscale(optimizer);
    const overflowed = this.#foundInf.get(optimizer)!.item() !== 0;
    if (overflowed) this.#overflowed = true;
    else optimizer.step();
    this.#stepped.add(optimizer);
    return !overflowed;
  }

  /** Adapts the scale to what the steps since the last update met. */
  update(): void {
    if (!this.#options.enabled) return;
    if (this.#stepped.size === 0) {
      throw outOfOrder('GradientScaler.update: call step() first; there is nothing to adapt the scale to.');
    }
    const { growthFactor, backoffFactor, growthInterval } = this.#options;
    if (this.#overflowed) {
      this.#scale *= backoffFactor;
      this.#growthTracker = 0;
    } else if (++this.#growthTracker === growthInterval) {
      const grown = this.#scale * growthFactor;
      if (Math.fround(grown) < Infinity) this.#scale = grown;
      this.#growthTracker = 0;
    }
    this.dispose();
  }

  stateDict(): GradientScalerState {
    return { scale: this.#scale, growthTracker: this.#growthTracker };
  }

  /** Throws an OptimizerStateError for a scale or a count that no scaler can have. */
  loadStateDict(state: GradientScalerState): void {
    checkObject('GradientScaler.loadStateDict', 'the state', state);
    const { scale, growthTracker } = state;
    // It multiplies the loss in float32.
    const isScale = typeof scale === 'number' && Math.fround(scale) > 0 && Math.fround(scale) < Infinity;
    if (!isScale || !Number.isSafeInteger(growthTracker) || growthTracker < 0) {
      throw new OptimizerStateError(
        `GradientScaler.loadStateDict: scale ${describeValue(scale)} must be positive and finite in float32, and growthTracker ` +
          `${describeValue(growthTracker)} a whole number of zero or more.`,
      );
    }
    this.#scale = scale;
    this.#growthTracker = growthTracker;
  }

  /** Forgets what has happened since the last update, and frees what `unscale` has kept for a step. */
  dispose(): void {
    for (const foundInf of this.#foundInf.values()) foundInf.dispose();
    this.#foundInf.clear();
    this.#stepped.clear();
    this.#overflowed = false;
  }
}
