import {
  CompileError,
  type Device,
  DeviceError,
  RooflineError,
  type Tensor,
  addInPlace,
  checkFlag,
  checkNumber,
  checkObject,
  checkOptions,
  dependOn,
  describeValue,
  full,
  keep,
  mul,
  noGrad,
  range,
  requireTensor,
  scope,
  zeros,
} from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import { type GradientRanks, requireRanks } from './gradient-ranks.ts';
import { gradientsOf, gradientsOfRank } from './gradients.ts';
import { refuseReplays } from '../refuse-replays.ts';
import { withoutUndefined } from '../optimizers/hyperparameters.ts';
import { OptimizerStateError } from '../optimizers/optimizer-state.ts';
import { unscale } from './unscale.ts';
import { updateScale } from './update-scale.ts';

/** How the scale begins and moves: the names and defaults of `torch.amp.GradScaler`. */
export interface GradientScalerOptions {
  /** Default 65536. */
  readonly initialScale?: number;
  /** The scale is multiplied by this after `growthInterval` steps without an overflow. Default 2. */
  readonly growthFactor?: number;
  /** The scale is multiplied by this after a step with one, as long as its inverse stays finite in float32. Default 0.5. */
  readonly backoffFactor?: number;
  /** Default 2000. */
  readonly growthInterval?: number;
  /** False lets losses and steps through as they are, for training that also runs without float16. Default true. */
  readonly enabled?: boolean;
  /** Where each rank has a part of the gradients: all skip a step whose gradients overflowed on one. */
  readonly ranks?: GradientRanks;
}

type Settings = Required<Omit<GradientScalerOptions, 'ranks'>>;

const defaults: Settings = {
  initialScale: 2 ** 16,
  growthFactor: 2,
  backoffFactor: 0.5,
  growthInterval: 2000,
  enabled: true,
};

/** In float32, in which it multiplies the loss. */
function isScale(value: number): boolean {
  return Math.fround(value) > 0 && Math.fround(value) < Infinity;
}

function checkOptionValues(options: Settings): void {
  const check = (name: keyof typeof options, wanted: string, isAllowed: (value: number) => boolean) =>
    checkNumber('GradientScaler', name, options[name] as number, wanted, isAllowed);
  check('initialScale', 'positive and finite', isScale);
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

/** What the scaler needs of an optimizer: those of this package, and others whose steps the device can skip. */
export interface SteppingOptimizer {
  parameters(): Iterable<Tensor>;
  step(): void;
  /** Changes nothing where `skip`, a float32 scalar on the device, is not 0. */
  stepUnless(skip: Tensor): void;
}

const optimizerMethods = ['parameters', 'step', 'stepUnless'] as const;

function requireOptimizer(owner: string, optimizer: SteppingOptimizer): void {
  if (optimizerMethods.every((method) => typeof optimizer?.[method] === 'function')) return;
  throw new RooflineError(
    'ARGUMENT',
    `${owner}: takes an optimizer, with ${optimizerMethods.join('(), ')}(), not ${describeValue(optimizer)}.`,
  );
}

function outOfOrder(message: string): RooflineError {
  return new RooflineError('ORDER', message);
}

/** The scale and the count of good steps since it last changed, where the device keeps them. */
interface DeviceState {
  readonly device: Device;
  readonly scale: Tensor;
  readonly growthTracker: Tensor;
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
 * From its first use on the scale is a tensor on that device, and whether a step is skipped is decided there: only
 * `currentScale`, `hasSkipped` and `stateDict`, which read, wait for the device.
 *
 * Throws a RooflineError for factors that would not grow and shrink the scale (code RANGE), and for options that do not
 * exist (code OPTION); its methods throw a DeviceError for tensors of another device than the first.
 */
export class GradientScaler {
  readonly #options: Settings;
  readonly #ranks: GradientRanks | null;
  /** Until the first use. */
  #initial: GradientScalerState;
  #state: DeviceState | null = null;
  readonly #readOnHost = () => (this.#state ? null : this.#initial);
  /** For each optimizer unscaled since the last update: whether its gradients overflowed, on the device. */
  readonly #foundInf = new Map<SteppingOptimizer, Tensor>();
  readonly #stepped = new Set<SteppingOptimizer>();
  /** The compiled function in which these were found; null outside. */
  #trace: ReturnType<typeof currentTrace> = null;

  constructor(options: GradientScalerOptions = {}) {
    checkOptions('GradientScaler', options, [...Object.keys(defaults), 'ranks']);
    const { ranks, ...settings } = options;
    this.#options = { ...defaults, ...withoutUndefined(settings) };
    checkOptionValues(this.#options);
    if (ranks !== undefined) requireRanks('GradientScaler', ranks);
    this.#ranks = ranks ?? null;
    this.#initial = { scale: Math.fround(this.#options.initialScale), growthTracker: 0 };
  }

  /** The factor of the next loss; 1 where the scaler is not enabled. Waits for the device. */
  get currentScale(): number {
    return this.#options.enabled ? this.#read().scale : 1;
  }

  /** `loss` times the current scale: run backward from it. */
  scale(loss: Tensor): Tensor {
    requireTensor('GradientScaler.scale', loss);
    return this.#options.enabled ? mul(loss, this.#stateOn('GradientScaler.scale', loss.device).scale) : loss;
  }

  /**
   * Divides the gradients of an optimizer's parameters by the scale, in place; `step` does so itself, but
   * clipping must see true gradients. Throws a RooflineError (code ORDER) if called twice before `update`, and a
   * CompileError unless it, `step` and `update` run in one compiled function, or all outside.
   */
  unscale(optimizer: SteppingOptimizer): void {
    requireOptimizer('GradientScaler.unscale', optimizer);
    if (!this.#options.enabled) return;
    this.#expectTogether('unscale');
    if (this.#foundInf.has(optimizer)) {
      throw outOfOrder(
        'GradientScaler.unscale: the gradients of this optimizer have been unscaled since the last update().',
      );
    }
    const owner = 'GradientScaler.unscale';
    const parameters = optimizer.parameters();
    const rank = this.#ranks ? gradientsOfRank(owner, parameters) : null;
    const gradients = rank?.gradients ?? gradientsOf(owner, parameters);
    const { device, scale } = this.#stateOn(owner, rank?.device ?? gradients[0]!.device);
    inOptimizer(() => {
      const foundInf = zeros([], { device });
      if (gradients.length > 0) unscale(gradients, foundInf, scale);
      this.#ranks?.max(foundInf);
      this.#foundInf.set(optimizer, keep(foundInf));
    });
  }

  /**
   * Unscales the gradients unless that was done, and makes a step of `optimizer`, which the device skips if they
   * overflowed; see `hasSkipped`. Throws a RooflineError (code ORDER) if called twice before `update`, or for an optimizer
   * whose steps the device cannot skip (code OPTIMIZER), and a CompileError as `unscale` does.
   */
  step(optimizer: SteppingOptimizer): void {
    requireOptimizer('GradientScaler.step', optimizer);
    if (!this.#options.enabled) return optimizer.step();
    this.#expectTogether('step');
    if (this.#stepped.has(optimizer)) {
      throw outOfOrder('GradientScaler.step: this optimizer has made its step since the last update().');
    }
    if (!this.#foundInf.has(optimizer)) this.unscale(optimizer);
    optimizer.stepUnless(this.#foundInf.get(optimizer)!);
    this.#stepped.add(optimizer);
  }

  /**
   * Whether the step that `optimizer` made since the last update was skipped. Waits for the device. Throws a RooflineError
   * (code ORDER) if it made none.
   */
  hasSkipped(optimizer: SteppingOptimizer): boolean {
    requireOptimizer('GradientScaler.hasSkipped', optimizer);
    if (!this.#options.enabled) return false;
    if (!this.#stepped.has(optimizer)) {
      throw outOfOrder('GradientScaler.hasSkipped: call step() first, and ask before update().');
    }
    return this.#foundInf.get(optimizer)!.item() !== 0;
  }

  /**
   * Adapts the scale to what was found in all gradients unscaled since the last update, whether or not a step used
   * them. Throws a RooflineError (code ORDER) if there was no step at all, and a CompileError as `unscale` does.
   */
  update(): void {
    if (!this.#options.enabled) return;
    this.#expectTogether('update');
    if (this.#stepped.size === 0) {
      throw outOfOrder('GradientScaler.update: call step() first; there is nothing to adapt the scale to.');
    }
    const [foundInf, ...others] = this.#foundInf.values();
    // A state that was loaded since the step is not on the device yet.
    const { scale, growthTracker } = this.#stateOn('GradientScaler.update', foundInf!.device);
    inOptimizer(() => {
      for (const other of others) addInPlace(foundInf!, other);
      updateScale(scale, growthTracker, foundInf!, this.#options);
    });
    this.#forgetSteps();
  }

  /** Waits for the device. */
  stateDict(): GradientScalerState {
    return this.#read();
  }

  /**
   * Throws an OptimizerStateError for a scale or a count that no scaler can have, and a CompileError in a compiled function,
   * whose replays would not load it.
   */
  loadStateDict(state: GradientScalerState): void {
    refuseReplays('the state of a GradientScaler is loaded');
    checkObject('GradientScaler.loadStateDict', 'the state', state);
    const { scale, growthTracker } = state;
    if (
      typeof scale !== 'number' ||
      !isScale(scale) ||
      !Number.isSafeInteger(growthTracker) ||
      growthTracker < 0
    ) {
      throw new OptimizerStateError(
        `GradientScaler.loadStateDict: scale ${describeValue(scale)} must be positive and finite in float32, and growthTracker ` +
          `${describeValue(growthTracker)} a whole number of zero or more.`,
      );
    }
    this.#moveToHost({ scale: Math.fround(scale), growthTracker });
  }

  /**
   * Forgets what has happened since the last update, and frees the scaler's tensors; it may be used again, and goes on
   * from the scale that it had. Waits for the device.
   */
  dispose(): void {
    this.#forgetSteps();
    this.#moveToHost(this.#read());
  }

  /** Each replay finds for itself whether gradients overflowed, and can pass that only to what it runs itself. */
  #expectTogether(method: string): void {
    const trace = currentTrace();
    if (this.#foundInf.size === 0) this.#trace = trace;
    if (trace === this.#trace) return;
    this.#forgetSteps();
    throw new CompileError(
      `GradientScaler.${method}: unscale(), step() and update() of one step ran in and outside of a compiled function, or in ` +
        'two of its calls; call all of them in it, or all outside.',
    );
  }

  #read(): GradientScalerState {
    const onHost = dependOn(this.#readOnHost);
    if (onHost) return onHost;
    const { scale, growthTracker } = this.#state!;
    return { scale: scale.item(), growthTracker: growthTracker.item() };
  }

  #stateOn(owner: string, device: Device): DeviceState {
    this.#state ??= stateOn(device, this.#initial);
    if (this.#state.device === device) return this.#state;
    throw new DeviceError(
      `${owner}: the scale is on ${this.#state.device.label}, where it was used first, and the tensor on ${device.label}; ` +
        'make a scaler for each device, or call dispose() to move this one.',
    );
  }

  #moveToHost(state: GradientScalerState): void {
    this.#state?.scale.dispose();
    this.#state?.growthTracker.dispose();
    this.#state = null;
    this.#initial = state;
  }

  #forgetSteps(): void {
    for (const foundInf of this.#foundInf.values()) foundInf.dispose();
    this.#foundInf.clear();
    this.#stepped.clear();
  }
}

function stateOn(device: Device, { scale, growthTracker }: GradientScalerState): DeviceState {
  return noGrad(() =>
    scope(() => ({
      device,
      scale: keep(full([], scale, { device })),
      growthTracker: keep(full([], growthTracker, { device, dtype: 'int64' })),
    })),
  );
}

function inOptimizer(run: () => void): void {
  range('optimizer', () => noGrad(() => scope(run)));
}
