import {
  DisposedError,
  RooflineError,
  type Tensor,
  checkCount,
  checkOptions,
  dependOn,
  requireTensor,
} from '@roofline/tensor-core';
import { makeSymmetric } from '../group/make-symmetric.ts';
import { requireGroup } from '../group/check-call.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import type { Work } from '../group/work.ts';
import { assignBuckets, assignShards } from './assign-shards.ts';
import { startBroadcasts } from './broadcast-all.ts';
import { checkAgreement } from './check-agreement.ts';
import { type StateOptions, type StateSplit, loadState, rootOf, saveState } from './save-and-load-state.ts';
import type { ShardableState } from './shard-states.ts';
import {
  type OptimizerClass,
  type ShardableOptimizer,
  type ShardableParameters,
  requireOptimizerClass,
} from './shardable-optimizer.ts';

const owner = 'ShardedOptimizer';

/** How the parameters of a `ShardedOptimizer` are sent. */
export interface ShardedOptimizerOptions {
  /** A rank sends so many bytes together, and updates the next ones meanwhile; a whole number of 1 or more. Default: 256 MiB. */
  readonly bucketBytes?: number;
}

/** A group of the optimizer of a rank's share: what goes in one bucket of a group of all parameters. */
interface Share {
  readonly group: number;
  readonly bucket: number;
  /** Of its parameters, among all. */
  readonly numbers: readonly number[];
}

/**
 * An optimizer whose state is split over the ranks of a group (ZeRO stage 1, Rajbhandari et al. 2020): each rank holds
 * the state of its share of the parameters, about 1/n of the bytes, updates those, and sends what it has updated while it updates the
 * rest. All ranks must have the same gradients before a step, as after DistributedDataParallel's backward pass.
 *
 *     const optimizer = new ShardedOptimizer(model.parameters(), AdamW, group, { learningRate: 3e-4 });
 *
 * Throws what the optimizer throws, a RooflineError for a `bucketBytes` that is none, and a CollectiveError where the ranks' parameters
 * or options differ.
 */
export class ShardedOptimizer<H extends object> {
  readonly group: ProcessGroup;
  /** Never makes a step: it holds all parameters, with the hyperparameters that may change between steps. */
  readonly #whole: ShardableOptimizer<H>;
  readonly #groups: ShardableOptimizer<H>['groups'];
  /** This rank's share; null where there are fewer parameters than ranks. */
  #own: ShardableOptimizer<H> | null;
  readonly #makeOwn: () => ShardableOptimizer<H> | null;
  /** Of each parameter, the rank of the group that updates it. */
  readonly #owners: readonly number[];
  /** What is sent together, in this order: the numbers of its parameters. */
  readonly #buckets: readonly (readonly number[])[];
  readonly #shares: readonly Share[];
  /** Of the parameters that have made a step of this state, whether one of theirs was by `stepUnless`. */
  #mayHaveSkipped = new Map<Tensor, boolean>();
  #isDisposed = false;
  readonly #readDisposed = () => this.#isDisposed;
  /** The call that exchanges the state, until its promise is settled. */
  #underWay: 'stateDict' | 'loadStateDict' | null = null;
  readonly #readUnderWay = () => this.#underWay;

  constructor(
    parameters: ShardableParameters<H>,
    Optimizer: OptimizerClass<H>,
    group: ProcessGroup,
    options: Partial<H> = {},
    sending: ShardedOptimizerOptions = {},
  ) {
    requireOptimizerClass(owner, Optimizer);
    requireGroup(owner, group);
    checkOptions(owner, sending, ['bucketBytes']);
    const { bucketBytes = 2 ** 28 } = sending;
    checkCount(owner, 'bucketBytes', bucketBytes, 1);
    this.#whole = new Optimizer(parameters, options);
    this.#groups = this.#whole.groups.map((each) => this.#passingOn(each));
    const all = this.#whole.parameters();
    const hyperparameters = this.#whole.groups.map(({ parameters: { length }, ...rest }) => ({
      length,
      ...rest,
    }));
    checkAgreement(
      owner,
      group,
      all.map((parameter, i) => [`parameter ${i}`, parameter]),
      { optimizer: Optimizer.name, groups: hyperparameters, bucketBytes },
    );
    makeSymmetric(group, all);
    const sizes = all.map(({ byteLength }) => byteLength);
    this.group = group;
    this.#owners = assignShards(sizes, group.size);
    // The last parameters first: their gradients come first.
    const reversed = assignBuckets(sizes.toReversed(), this.#owners.toReversed(), bucketBytes);
    const buckets = reversed.toReversed();
    const inBucket = Map.groupBy(buckets.keys(), (number) => buckets[number]!);
    this.#buckets = Array.from(
      { length: Math.max(...buckets) + 1 },
      (_, bucket) => inBucket.get(bucket) ?? [],
    );
    this.#shares = this.#ownShares(buckets);
    const groupOf = ({ group: of, numbers }: Share) => ({
      ...this.groups[of]!,
      parameters: numbers.map((number) => all[number]!),
    });
    this.#makeOwn = () => (this.#shares.length > 0 ? new Optimizer(this.#shares.map(groupOf)) : null);
    this.#own = this.#makeOwn();
  }

  /** The groups of all parameters. Hyperparameters may be changed between steps, on all ranks alike. */
  get groups(): ShardableOptimizer<H>['groups'] {
    return this.#groups;
  }

  /** All parameters, of all ranks, group by group. */
  parameters(): Tensor[] {
    return this.#whole.parameters();
  }

  /** Those that this rank updates, and whose state it holds. */
  ownParameters(): Tensor[] {
    return this.#own?.parameters() ?? [];
  }

  /** The learning rate of the first group; setting it sets that of all. */
  get learningRate(): number {
    return this.#whole.learningRate;
  }

  set learningRate(learningRate: number) {
    this.#whole.learningRate = learningRate;
    if (this.#own) this.#own.learningRate = learningRate;
  }

  /** A view of a group that passes on what is set to this rank's share, at once: a compiled step may set nothing. */
  #passingOn<G extends object>(group: G): G {
    return new Proxy(group, {
      set: (target, name, value) => {
        const before: unknown = Reflect.get(target, name);
        const isSet = Reflect.set(target, name, value);
        this.#passHyperparameters();
        // With the first momentum, say, an optimizer runs other ops and makes more state.
        if (Boolean(before) !== Boolean(value)) this.#mayHaveSkipped = new Map();
        return isSet;
      },
    });
  }

  #passHyperparameters(): void {
    for (const [i, { group }] of this.#shares.entries()) {
      const { parameters: _, ...hyperparameters } = this.groups[group]!;
      if (this.#own) Object.assign(this.#own.groups[i]!, hyperparameters);
    }
  }

  /** Forgets all gradients. */
  zeroGrad(): void {
    this.#whole.zeroGrad();
  }

  /**
   * Updates this rank's parameters, and brings all others up to date. A collective: all ranks call it. Throws what the
   * optimizer throws, before anything is sent where it is about parameters and gradients, and a CollectiveError.
   */
  step(): void {
    this.#assertReady('step');
    this.#noteSteps(false);
    this.#update((own, onGroupUpdated) => own.step(onGroupUpdated));
  }

  /**
   * The same where `skip` is 0; else nothing changes, as `stepUnless` of the optimizer has it: what a GradientScaler calls.
   * All ranks must give the same, as they do where they have the same gradients.
   */
  stepUnless(skip: Tensor): void {
    this.#assertReady('stepUnless');
    requireTensor(`${owner}.stepUnless`, skip);
    this.#noteSteps(true);
    this.#update((own, onGroupUpdated) => own.stepUnless(skip, onGroupUpdated));
  }

  /**
   * Notes which parameters make a step. Their first one makes the optimizer's state, and their first `stepUnless` more of it, so that
   * a compiled step is recorded again: by all ranks, also those that update other parameters.
   */
  #noteSteps(maySkip: boolean): void {
    const stepping = this.parameters().filter(({ grad }) => grad !== null);
    const known = this.#mayHaveSkipped;
    dependOn(() => known === this.#mayHaveSkipped && stepping.map((each) => known.get(each)).join());
    for (const each of stepping) known.set(each, maySkip || known.get(each) === true);
  }

  #update(step: (own: ShardableOptimizer<H>, onGroupUpdated: (group: number) => void) => void): void {
    const works: Work[] = [];
    const all = this.parameters();
    const ends = this.#buckets.length;
    let bucket = 0;
    const sendBefore = (end: number) => {
      for (; bucket < end; bucket++) works.push(this.#send(all, this.#buckets[bucket]!));
    };
    if (this.#own) step(this.#own, (share) => sendBefore(this.#shares[share + 1]?.bucket ?? ends));
    sendBefore(ends);
    for (const work of works) work.wait();
  }

  /** Begins to send a bucket, which its owners have updated. */
  #send(all: readonly Tensor[], numbers: readonly number[]): Work {
    const parameters = numbers.map((number) => all[number]!);
    return startBroadcasts(this.group, parameters, (i) => this.#owners[numbers[i]!]!);
  }

  /**
   * The state of all parameters, as the optimizer on one rank would have it, in copies that are the caller's to dispose;
   * null on ranks other than the `root`. A collective. Until its promise is settled a step is refused, because the
   * copies would hold part of it.
   */
  async stateDict(options: StateOptions = {}): Promise<ShardableState | null> {
    const root = this.#rootOf('stateDict', options);
    return await this.#exchange('stateDict', () => saveState(this.#split, this.#own, root));
  }

  /**
   * Continues from a whole state, which all ranks have, or the `root` alone: the others give null. A collective. Throws
   * on all ranks where one gives something else, or it is not of these parameters: the optimizer's state is then as it was.
   * Until its promise is settled a step is refused, because it would be lost.
   */
  async loadStateDict(state: ShardableState | null, options: StateOptions = {}): Promise<void> {
    const root = this.#rootOf('loadStateDict', options);
    await this.#exchange('loadStateDict', async () => {
      const loaded = await loadState(this.#split, this.#makeOwn, state, root);
      this.#own?.dispose();
      this.#own = loaded;
      // Some may have been set meanwhile.
      this.#passHyperparameters();
      this.#mayHaveSkipped = new Map();
    });
  }

  /** Runs a call that moves the state between ranks; meanwhile the state must not change. */
  async #exchange<T>(method: 'stateDict' | 'loadStateDict', run: () => Promise<T>): Promise<T> {
    this.#underWay = method;
    try {
      return await run();
    } finally {
      this.#underWay = null;
    }
  }

  /** Frees this rank's state; it makes no further step. Disposing twice is harmless. */
  dispose(): void {
    this.#isDisposed = true;
    this.#own?.dispose();
    this.#whole.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** This rank's parameters, bucket by bucket, and group by group within one. */
  #ownShares(buckets: readonly number[]): Share[] {
    let number = 0;
    const shares = this.groups.flatMap(({ parameters }, group) => {
      const own = parameters.map(() => number++).filter((each) => this.#owners[each] === this.group.rank);
      const byBucket = Map.groupBy(own, (each) => buckets[each]!);
      return [...byBucket].map(([bucket, numbers]) => ({ group, bucket, numbers }));
    });
    return shares.toSorted((a, b) => a.bucket - b.bucket);
  }

  get #split(): StateSplit {
    return {
      group: this.group,
      owners: this.#owners,
      own: this.#shares.flatMap(({ numbers }) => numbers),
      device: this.parameters()[0]!.device,
    };
  }

  #rootOf(method: 'stateDict' | 'loadStateDict', options: StateOptions): number | null {
    this.#assertReady(method);
    return rootOf(`${owner}.${method}`, options, this.group);
  }

  #assertReady(method: string): void {
    // A compiled step asks before each run.
    if (dependOn(this.#readDisposed)) {
      throw new DisposedError(
        `${owner}.${method}: the optimizer was used after it had been disposed; make a new one.`,
      );
    }
    const underWay = dependOn(this.#readUnderWay);
    if (underWay === null) return;
    throw new RooflineError('ORDER', `${owner}.${method}: ${underWay}() is under way; await it first.`);
  }
}
