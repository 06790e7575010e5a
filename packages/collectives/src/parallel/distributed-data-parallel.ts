import {
  RooflineError,
  type Tensor,
  checkCount,
  checkFunction,
  dependOn,
  fromTypedArray,
  onBackwardFinished,
  scope,
} from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import { requireGroup } from '../group/check-call.ts';
import { makeSymmetric } from '../group/make-symmetric.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { BackwardPass } from './backward-pass.ts';
import { broadcastAll } from './broadcast-all.ts';
import { checkAgreement } from './check-agreement.ts';
import {
  type DataParallelMode,
  type DistributedDataParallelOptions,
  type ReplicatedModel,
  checkedOptions,
  namedTensors,
  owner,
} from './data-parallel-arguments.ts';
import { FlatBucket, type GradientBucket, SingleGradient } from './gradient-buckets.ts';
import { planBuckets } from './plan-buckets.ts';

const firstBucketBytes = 2 ** 20;

/** Parameters that a wrapper reduces: a second one would average what the first has averaged only in part. */
const reduced = new WeakSet<Tensor>();

/**
 * Data parallelism (as torch.nn.parallel.DistributedDataParallel, Li et al. 2020, "PyTorch Distributed"): each rank runs
 * the model on its own part of the batch, and `backward` leaves the average of all ranks' gradients on all of them. All
 * ranks begin with the parameters of the first one, frozen ones and buffers too, make the same steps and so stay alike.
 *
 *     const parallel = new DistributedDataParallel(model, group);
 *     loss(model, ownBatch).backward(); // the model is called as before
 *     optimizer.step();
 *
 * Gradients of 'flat' and 'overlap' are views of the buckets, written there by the ops that make them where these can
 * (`copiedBytes` counts the others); each later one is added.
 *
 * A backward pass that reaches at least one parameter is one collective of all ranks; where they set `step`, those at
 * different steps all get a CollectiveError. Where it reaches one from several
 * `checkpoint`s, take 'naive' or 'flat': 'overlap' has sent the first part by then, and throws.
 *
 * Throws a CollectiveError where the ranks' models or options differ, a RooflineError for a model without anything to
 * train, or whose tensors cannot be sent or are reduced by another one (code PARAMETERS), and for options that do not
 * exist.
 */
export class DistributedDataParallel<Model extends ReplicatedModel = ReplicatedModel> {
  readonly module: Model;
  readonly group: ProcessGroup;
  readonly mode: DataParallelMode;
  readonly #findUnused: boolean;
  /** Names of what is trained. */
  readonly #names: ReadonlyMap<Tensor, string>;
  /** In the order in which they are reduced, which is the same on all ranks. */
  readonly #buckets: readonly GradientBucket[];
  readonly #bucketOf: ReadonlyMap<Tensor, GradientBucket>;
  readonly #removeHooks: (() => void)[];
  /** The hook at the end of the pass that runs; null while none does, so that other functions can be compiled. */
  #stopListening: (() => void) | null = null;
  readonly #pass = new BackwardPass();
  #copiedBytes = 0;
  #unsynchronized = 0;
  /** Whether passes add up on this rank alone. */
  readonly #adds = () => this.#unsynchronized > 0;
  #step: number | null = null;
  #isOutOfStep = false;

  constructor(model: Model, group: ProcessGroup, options: DistributedDataParallelOptions = {}) {
    requireGroup(owner, group);
    const named = namedTensors(model);
    const trained = named.filter(([, { requiresGrad }]) => requiresGrad);
    const { mode, bucketBytes, findUnusedParameters } = checkedOptions(
      options,
      trained.map(([, parameter]) => parameter),
    );
    if (trained.length === 0)
      throw new RooflineError('PARAMETERS', `${owner}: no parameter of the model requires a gradient.`);
    const taken = trained.find(([, parameter]) => reduced.has(parameter));
    if (taken)
      throw new RooflineError(
        'PARAMETERS',
        `${owner}: another one reduces the gradient of "${taken[0]}"; dispose() that one first.`,
      );
    checkAgreement(owner, group, named, { mode, bucketBytes, findUnusedParameters });
    broadcastAll(
      group,
      named.map(([, tensor]) => tensor),
      () => 0,
    );
    this.module = model;
    this.group = group;
    this.mode = mode;
    this.#findUnused = findUnusedParameters;
    this.#names = new Map(trained.map(([name, parameter]) => [parameter, name]));
    this.#buckets = bucketsOf([...this.#names.keys()], mode, bucketBytes);
    this.#bucketOf = new Map(
      this.#buckets.flatMap((bucket) => bucket.parameters.map((parameter) => [parameter, bucket] as const)),
    );
    makeSymmetric(
      group,
      this.#buckets.flatMap(({ buffer }) => buffer ?? []),
    );
    this.#removeHooks = trained.map(([, parameter]) =>
      parameter.onGradientAccumulated((_, wasCopied) => this.#arrived(parameter, wasCopied), {
        compiles: true,
      }),
    );
    for (const [, parameter] of trained) reduced.add(parameter);
  }

  /**
   * The training step that this rank is at, which all ranks set as it begins; null, as initially, where it is not set.
   * Each pass then sends it with the first of its gradients, and throws a CollectiveError on all ranks, with the step of each,
   * unless they are at the same one. So a rank that has skipped a step is found in the same step. Without it the
   * gradients of its next step are averaged with those of the others' present one, since nothing tells them apart,
   * until at the end a pass is missing. With NCCL the pass does not wait for the others' answer: a later call of the
   * group throws the error. Throws a RooflineError (code RANGE) for what is not a whole number of zero or more.
   */
  get step(): number | null {
    return this.#step;
  }

  set step(step: number | null) {
    if (step !== null) checkCount(`${owner}.step`, 'step', step, 0);
    this.#step = step;
  }

  /** What is reduced together, in this order: the names of its parameters, and the bytes of their gradients. */
  get buckets(): readonly { readonly names: readonly string[]; readonly bytes: number }[] {
    return this.#buckets.map(({ parameters }) => ({
      names: parameters.map((parameter) => this.#names.get(parameter)!),
      bytes: parameters.reduce((sum, { byteLength }) => sum + byteLength, 0),
    }));
  }

  /**
   * Bytes of gradients that have been copied into their buckets since the start. None where the ops that make gradients
   * write them there; Tensor.setGradientBuffer says which do. A gradient that is set by hand, or that was there before,
   * is copied too.
   */
  get copiedBytes(): number {
    return this.#buckets.reduce((sum, { copiedBytes }) => sum + copiedBytes, this.#copiedBytes);
  }

  /**
   * Runs `fn`, whose backward passes add up gradients on this rank alone; the next pass outside reduces the sums. `fn`
   * may be async.
   */
  noSync<T>(fn: () => T): T {
    checkFunction(`${owner}.noSync`, 'what it runs', fn);
    this.#unsynchronized++;
    const end = () => void this.#unsynchronized--;
    let result: T;
    try {
      result = fn();
    } catch (error) {
      end();
      throw error;
    }
    if (isPromise(result)) result.then(end, end);
    else end();
    return result;
  }

  /** Releases the model: its gradients are its own again. Disposing twice is harmless. */
  dispose(): void {
    if (this.#removeHooks.length === 0) return;
    for (const remove of this.#removeHooks.splice(0)) remove();
    for (const parameter of this.#names.keys()) reduced.delete(parameter);
    this.#endPass();
    for (const bucket of this.#buckets) bucket.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #arrived(parameter: Tensor, wasCopied: boolean): void {
    if (wasCopied) this.#copiedBytes += parameter.byteLength;
    if (dependOn(this.#adds)) return;
    if (this.#isOutOfStep) throw outOfStep();
    this.#stopListening ??= onBackwardFinished(
      () => this.#finish(),
      () => this.#fail(),
      { compiles: true },
    );
    const bucket = this.#bucketOf.get(parameter)!;
    // What is added now is this rank's alone.
    if (this.#buckets.indexOf(bucket) < this.#pass.works.length) throw this.#sentAlready(parameter);
    this.#pass.arrive(bucket, parameter);
    if (this.mode === 'overlap') this.#startComplete();
  }

  /** Starts the buckets whose gradients all have come, up to the first that is not complete: ranks must keep the order. */
  #startComplete(): void {
    const { works } = this.#pass;
    for (let bucket = this.#buckets[works.length]; bucket; bucket = this.#buckets[works.length]) {
      if (!this.#pass.isComplete(bucket)) return;
      this.#start(bucket);
    }
  }

  /** Begins to reduce the next bucket. The first one of a pass announces the step that this rank is at. */
  #start(bucket: GradientBucket): void {
    const { works } = this.#pass;
    // A compiled step would tell the number of its first call for ever.
    const tells = this.#step !== null && works.length === 0 && !currentTrace();
    works.push(bucket.average(this.group, tells ? { context: `step ${this.#step}` } : {}));
  }

  #finish(): void {
    let missing: readonly Tensor[];
    try {
      missing = this.#reduceRest();
    } catch (error) {
      this.#fail();
      throw error;
    }
    this.#endPass();
    if (!this.#findUnused && missing.length > 0) throw this.#unusedParameters(missing);
  }

  /** Reduces what is not under way yet, and waits for all of it; returns the parameters that got no gradient. */
  #reduceRest(): readonly Tensor[] {
    const { works } = this.#pass;
    // What came in passes before, inside noSync, is there to be reduced.
    const missing = [...this.#names.keys()].filter(({ grad }) => grad === null);
    for (const parameter of missing) this.#bucketOf.get(parameter)!.fillZeros(parameter);
    // Ranks on which nothing is missing wait for these.
    while (works.length < this.#buckets.length) this.#start(this.#buckets[works.length]!);
    const unused = this.#findUnused ? this.#unusedByAll(new Set(missing)) : missing;
    for (const work of works) work.wait();
    for (const parameter of unused) forgetGradient(parameter);
    return missing;
  }

  /**
   * The pass has failed: what was sent of it cannot be taken back. Its error is the one to report, not those of what
   * was sent.
   */
  #fail(): void {
    const { works } = this.#pass;
    this.#isOutOfStep ||= works.length > 0;
    for (const work of works) {
      try {
        work.wait();
      } catch {}
    }
    this.#endPass();
  }

  #endPass(): void {
    this.#stopListening?.();
    this.#stopListening = null;
    this.#pass.reset();
  }

  #unusedByAll(missing: ReadonlySet<Tensor>): Tensor[] {
    const parameters = [...this.#names.keys()];
    const isUsed = parameters.map((parameter) => Number(!missing.has(parameter)));
    const used = scope(() => {
      const { device } = parameters[0]!;
      const flags = fromTypedArray(Int32Array.from(isUsed), [parameters.length], { device });
      this.group.allReduce(flags, { op: 'max' }).wait();
      return flags.toFlatArray();
    });
    return parameters.filter((_, i) => used[i] === 0);
  }

  #sentAlready(parameter: Tensor): RooflineError {
    return new RooflineError(
      'GRADIENT',
      `${owner}: "${this.#names.get(parameter)}" has got a further gradient after its bucket was sent, as where several ` +
        "checkpoints of a pass use it; take the mode 'naive' or 'flat'.",
    );
  }

  #unusedParameters(parameters: readonly Tensor[]): RooflineError {
    const names = parameters.map((parameter) => this.#names.get(parameter)!);
    const shown = names.length > 8 ? [...names.slice(0, 8), `${names.length - 8} more`] : names;
    return new RooflineError(
      'UNUSED_PARAMETERS',
      `${owner}: on rank ${this.group.ranks[this.group.rank]} the backward pass brought no gradient to ` +
        `${shown.join(', ')}; use them in the loss, freeze them by requiresGrad_(false) before, or pass ` +
        '{ findUnusedParameters: true }.',
    );
  }
}

/** The last parameters first: their gradients come first. */
function bucketsOf(
  parameters: readonly Tensor[],
  mode: DataParallelMode,
  bucketBytes: number,
): readonly GradientBucket[] {
  const reversed = parameters.toReversed();
  if (mode === 'naive') return reversed.map((parameter) => new SingleGradient(parameter));
  const sizes =
    mode === 'flat'
      ? { firstBytes: Infinity, bytes: Infinity }
      : { firstBytes: Math.min(firstBucketBytes, bucketBytes), bytes: bucketBytes };
  return planBuckets(reversed, sizes).map((bucket) => new FlatBucket(bucket));
}

function forgetGradient(parameter: Tensor): void {
  parameter.grad?.dispose();
  parameter.grad = null;
}

function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise;
}

function outOfStep(): RooflineError {
  return new RooflineError(
    'OUT_OF_STEP',
    `${owner}: an earlier backward pass failed after some of its gradients had been sent, so the ranks are out of step; ` +
      'start all of them again from a checkpoint.',
  );
}
