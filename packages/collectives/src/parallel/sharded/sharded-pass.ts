import { RooflineError, type Tensor, fromTypedArray, onBackwardFinished, scope } from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import type { ShardedUnit } from './sharded-unit.ts';
import { owner } from './sharding-options.ts';

/** Reductions that may be under way: gradients of more units would not be let go. */
const mostUnderWay = 2;

/**
 * The backward pass of a sharded model: a unit's gradients are reduced as soon as all have come, and what arrives is added to the
 * shards'. Where parameters may be unused, all units are reduced at the end, the last first: a rank that misses a gradient
 * cannot know when the others have it, and all must gather and reduce in one order.
 */
export class ShardedPass {
  /** Those that are trained. */
  readonly #units: readonly ShardedUnit[];
  readonly #joined: readonly ProcessGroup[];
  readonly #findUnused: boolean;
  readonly #onEnd: () => void;
  readonly #arrived = new Map<ShardedUnit, Set<Tensor>>();
  readonly #reduced = new Set<ShardedUnit>();
  readonly #underWay: { readonly unit: ShardedUnit; readonly piece: Tensor }[] = [];
  #stopListening: (() => void) | null = null;
  #isOutOfStep = false;

  /** `joined` are all ranks, group by group; `onEnd` is called after each pass. */
  constructor(
    units: readonly ShardedUnit[],
    joined: readonly ProcessGroup[],
    findUnused: boolean,
    onEnd: () => void,
  ) {
    this.#units = units;
    this.#onEnd = onEnd;
    this.#joined = joined;
    this.#findUnused = findUnused;
  }

  /** A parameter's gradient has come. */
  arrive(unit: ShardedUnit, whole: Tensor): void {
    if (this.#isOutOfStep) throw outOfStep();
    this.#stopListening ??= onBackwardFinished(
      () => this.#finish(),
      () => this.#fail(),
      { compiles: true },
    );
    this.#arrived.set(unit, (this.#arrived.get(unit) ?? new Set()).add(whole));
    if (!this.#findUnused && this.#missing(unit).length === 0) this.#reduce(unit);
  }

  /** Those of a unit that the pass has brought no gradient yet. */
  #missing(unit: ShardedUnit): readonly Tensor[] {
    const arrived = this.#arrived.get(unit);
    return unit.trained.filter((whole) => !arrived?.has(whole));
  }

  #reduce(unit: ShardedUnit): void {
    this.#arrived.delete(unit);
    this.#reduced.add(unit);
    this.#underWay.push({ unit, piece: unit.reduce() });
    unit.letGo();
    if (!this.#findUnused && this.#underWay.length > mostUnderWay) this.#deliver(new Set());
  }

  #deliver(unused: ReadonlySet<string>): void {
    const { unit, piece } = this.#underWay.shift()!;
    unit.deliver(piece, unused);
  }

  #finish(): void {
    try {
      const missing = this.#reduceRest();
      if (!this.#findUnused && missing.length > 0) throw unusedParameters(this.#joined[0]!, missing);
      const unused = this.#findUnused ? this.#unusedByAll(new Set(missing)) : new Set<string>();
      while (this.#underWay.length > 0) this.#deliver(unused);
    } catch (error) {
      this.#fail();
      throw error;
    }
    this.#end();
  }

  /** Reduces what is left, the last unit first, and returns the names of parameters that got no gradient. */
  #reduceRest(): string[] {
    const missing: string[] = [];
    const isLeft = (unit: ShardedUnit) =>
      unit.trained.length > 0 && (!this.#reduced.has(unit) || this.#arrived.has(unit));
    for (const unit of this.#units.filter(isLeft).toReversed()) {
      const wholes = new Set(this.#reduced.has(unit) ? [] : this.#missing(unit));
      missing.push(...unit.wholes.flatMap(([name, whole]) => (wholes.has(whole) ? [name] : [])));
      this.#reduce(unit);
    }
    return missing;
  }

  /** The parameters that no rank has used. A collective. */
  #unusedByAll(missing: ReadonlySet<string>): Set<string> {
    const named = this.#units.flatMap(({ wholes }) => wholes);
    const isUsed = Int32Array.from(named, ([name]) => Number(!missing.has(name)));
    const used = scope(() => {
      const flags = fromTypedArray(isUsed, [named.length], { device: this.#units[0]!.device });
      for (const group of this.#joined) group.allReduce(flags, { op: 'max' }).wait();
      return flags.toFlatArray();
    });
    return new Set(named.flatMap(([name], i) => (used[i] === 0 ? [name] : [])));
  }

  /** What was sent of a pass that has failed cannot be taken back; its error is the one to report. */
  #fail(): void {
    this.#isOutOfStep ||= this.#reduced.size > 0;
    for (const { piece } of this.#underWay.splice(0)) piece.dispose();
    for (const unit of this.#units) unit.forgetGradients();
    this.#end();
  }

  #end(): void {
    this.#stopListening?.();
    this.#stopListening = null;
    this.#arrived.clear();
    this.#reduced.clear();
    for (const unit of this.#units) {
      unit.letGo();
      unit.forgetGathered();
    }
    this.#onEnd();
  }

  dispose(): void {
    this.#stopListening?.();
    this.#stopListening = null;
  }
}

function unusedParameters({ rank, ranks }: ProcessGroup, names: readonly string[]): RooflineError {
  const shown = names.length > 8 ? [...names.slice(0, 8), `${names.length - 8} more`] : names;
  return new RooflineError(
    'UNUSED_PARAMETERS',
    `${owner}: on rank ${ranks[rank]} the backward pass brought no gradient to ${shown.join(', ')}; use them in the loss, ` +
      'freeze them by requiresGrad_(false) before, or pass { findUnusedParameters: true }.',
  );
}

function outOfStep(): RooflineError {
  return new RooflineError(
    'OUT_OF_STEP',
    `${owner}: an earlier backward pass failed after some of its gradients had been sent, so the ranks are out of step; ` +
      'start all of them again from a checkpoint.',
  );
}
