import {
  RooflineError,
  type Tensor,
  autocast,
  checkFunction,
  isBackwardRunning,
  isGradEnabled,
} from '@roofline/tensor-core';
import { notFollowed } from '@roofline/tensor-core/kernel-api';
import type { ProcessGroup } from '../group/process-group.ts';
import { checkAgreement } from './check-agreement.ts';
import type { Mesh } from './mesh.ts';
import { BackwardOrder } from './sharded/backward-order.ts';
import {
  type ShardableModule,
  checkShardable,
  planUnits,
  replaceParameters,
} from './sharded/parameter-unit.ts';
import { ShardedPass } from './sharded/sharded-pass.ts';
import { type ShardedParameter, ShardedUnit } from './sharded/sharded-unit.ts';
import { type FullyShardOptions, checkedOptions, owner, shardingGroups } from './sharded/sharding-options.ts';
import { checkDivided } from './tensor/dividable-model.ts';

/** A module whose forward gathers a unit, in the order of the model. */
interface Stage {
  readonly module: ShardableModule;
  readonly unit: ShardedUnit;
  /** Whether the next module is of the same unit, which stays whole for it. */
  readonly isContinued: boolean;
  /** Whether none of another unit follows. */
  readonly isLast: boolean;
}

/** What ranks that have different gradients agree on: the norm of all, and whether any overflowed. */
export interface RanksOfShards {
  /** Replaces `x` by the sum over the ranks. */
  sum(x: Tensor): void;
  /** Replaces `x` by the largest of all ranks. */
  max(x: Tensor): void;
}

const sharded = new WeakSet<ShardableModule>();

/**
 * A model whose parameters, gradients and optimizer state are split over ranks (ZeRO stage 3, Rajbhandari et al. 2020; as PyTorch's
 * FSDP2, by unit): made by `fullyShard`. Optimizers get `parameters()`, this rank's parts.
 */
export class FullySharded<Model extends ShardableModule> {
  readonly module: Model;
  /** All ranks, and those that each have another part. */
  readonly group: ProcessGroup;
  readonly shardGroup: ProcessGroup;
  readonly #options: Required<FullyShardOptions>;
  readonly #units: readonly ShardedUnit[];
  readonly #stages: readonly Stage[];
  readonly #pass: ShardedPass;
  readonly #order = new BackwardOrder();
  readonly #removeHooks: (() => void)[] = [];

  /** Made by `fullyShard`. */
  constructor(model: Model, mesh: Mesh | ProcessGroup, options: FullyShardOptions) {
    const { group, shard, replicate, joined } = shardingGroups(mesh);
    this.#options = checkedOptions(options);
    const { computeDtype, reduceDtype, findUnusedParameters } = this.#options;
    const plans = planUnits(model);
    const named = plans.flatMap(({ parameters }) => parameters);
    if (sharded.has(model)) throw new RooflineError('PARAMETERS', `${owner}: the model is sharded already.`);
    if (named.length === 0) throw new RooflineError('PARAMETERS', `${owner}: the model has no parameters.`);
    for (const [name, tensor] of named) checkShardable(name, tensor);
    checkDivided(owner, model, mesh);
    for (const ranks of joined)
      checkAgreement(owner, ranks, named, { ...this.#options, ranks: shard.ranks.length });
    this.module = model;
    this.group = group;
    this.shardGroup = shard;
    this.#units = plans.map(({ parameters }) => {
      const before = parameters.map(([, tensor]) => tensor);
      const unit = new ShardedUnit(parameters, { shard, replicate, computeDtype, reduceDtype }, joined);
      replaceParameters(model, new Map(unit.wholes.map(([, whole], i) => [before[i]!, whole])));
      return unit;
    });
    this.#stages = stagesOf(model, plans, this.#units);
    this.#pass = new ShardedPass(this.#units, joined, findUnusedParameters, () => this.#order.end());
    for (const [index, { module }] of this.#stages.entries()) this.#wrap(module, index);
    for (const unit of this.#units) this.#listen(unit);
    sharded.add(model);
  }

  /**
   * This rank's parts of all parameters, one-dimensional and float32: what optimizers take. A rank that has none, of a model that is
   * too small for so many, gives memory that no parameter lies in.
   */
  *parameters(): Generator<Tensor> {
    let count = 0;
    for (const { leaf } of this.parts()) {
      count++;
      yield leaf;
    }
    if (count === 0) yield this.#units[0]!.padding;
  }

  /** The same with the parameters' names; on each rank those of which it has a part. */
  *namedParameters(): Generator<[name: string, part: Tensor]> {
    for (const { name, leaf } of this.parts()) yield [name, leaf];
  }

  /** The same, with which elements of a parameter of which shape each is. */
  *parts(): Generator<ShardedParameter> {
    for (const unit of this.#units) yield* unit.parameters;
  }

  /**
   * All parameters whole, in float32, one unit after the other; each is freed when the next is asked for. A collective: all ranks
   * go through all of them.
   */
  *wholeParameters(): Generator<[name: string, parameter: Tensor]> {
    for (const unit of this.#units) yield* eachFreed(unit.wholeParameters());
  }

  /** The same of their gradients; null for parameters that are not trained. */
  *wholeGradients(): Generator<[name: string, gradient: Tensor | null]> {
    for (const unit of this.#units) {
      const trained = new Set(unit.trained);
      const isTrained = new Map(unit.wholes.map(([name, whole]) => [name, trained.has(whole)]));
      for (const [name, gradient] of eachFreed(unit.wholesOf(({ leaf }) => leaf.grad)))
        yield [name, isTrained.get(name) ? gradient : null];
    }
  }

  /**
   * The same of whatever else the ranks have of each parameter, such as an optimizer's moments: `of` gives that of a part, of its
   * size, and null for zeros.
   */
  *wholesOf(of: (part: ShardedParameter) => Tensor | null): Generator<[name: string, whole: Tensor]> {
    checkFunction(`${owner}: wholesOf`, 'what gives the parts', of);
    for (const unit of this.#units) yield* eachFreed(unit.wholesOf(of));
  }

  /** The names and shapes of all parameters, in the order of `wholeParameters`. */
  *shapes(): Generator<[name: string, shape: readonly number[]]> {
    for (const { wholes } of this.#units) for (const [name, { shape }] of wholes) yield [name, shape];
  }

  /** What is gathered together: the names of its parameters, and the elements that travel, gaps among them. */
  get units(): readonly { readonly names: readonly string[]; readonly elements: number }[] {
    return this.#units.map(({ wholes, elements }) => ({ names: wholes.map(([name]) => name), elements }));
  }

  /** What clipping by the global norm and a GradientScaler need, since each rank has other gradients. */
  get ranks(): RanksOfShards {
    const over = (op: 'sum' | 'max') => (x: Tensor) => this.shardGroup.allReduce(x, { op }).wait();
    return { sum: over('sum'), max: over('max') };
  }

  /** Forgets this rank's gradients. */
  zeroGrad(): void {
    for (const leaf of this.parameters()) {
      leaf.grad?.dispose();
      leaf.grad = null;
    }
  }

  /** Frees the parameters, whole and in parts: the model cannot be used any more. Disposing twice is harmless. */
  dispose(): void {
    for (const remove of this.#removeHooks.splice(0)) remove();
    this.#pass.dispose();
    for (const unit of this.#units) unit.dispose();
    for (const { module } of this.#stages) delete (module as Partial<ShardableModule>).forward;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Has a module's forward gather its unit, and let it go. */
  #wrap(module: ShardableModule, index: number): void {
    const { computeDtype } = this.#options;
    const compute = module.forward.bind(module) as (...inputs: readonly unknown[]) => unknown;
    const forward = (...inputs: readonly unknown[]) => {
      notFollowed(() => this.#enter(index));
      const output =
        computeDtype === 'float32' ? compute(...inputs) : autocast(computeDtype, () => compute(...inputs));
      notFollowed(() => this.#leave(index));
      return output;
    };
    Object.defineProperty(module, 'forward', { value: forward, configurable: true, writable: true });
  }

  #listen(unit: ShardedUnit): void {
    unit.onUse = () => notFollowed(() => this.#use(unit));
    for (const [, whole] of unit.wholes) {
      // One that is frozen may be trained later.
      const { requiresGrad } = whole;
      whole.requiresGrad_();
      this.#removeHooks.push(
        whole.onGradientAccumulated(() => this.#pass.arrive(unit, whole), { compiles: true }),
      );
      whole.requiresGrad_(requiresGrad);
    }
  }

  #enter(index: number): void {
    const { unit, isLast } = this.#stages[index]!;
    const others = this.#units.filter((other) => other !== unit);
    if (!this.#staysForBackward) for (const other of others) other.letGo();
    // A checkpoint runs forward again in the backward pass.
    if (isBackwardRunning()) return this.#use(unit);
    if (index === 0) this.#begin();
    unit.makeWhole();
    if (!this.#options.prefetch) return;
    if (!isLast) this.#stages[index + 1]!.unit.gather();
    // It stays whole for the backward pass, which comes to another one next.
    else if (isGradEnabled()) this.#order.first?.gather();
  }

  /**
   * A forward pass begins. What something else than a module has used before, or a pass that no backward pass has ended has
   * gathered, may be of parameters that an optimizer has updated since.
   */
  #begin(): void {
    this.#order.begin();
    for (const unit of this.#units) {
      unit.forgetGathered();
      unit.letGo();
    }
  }

  #leave(index: number): void {
    const { unit, isContinued, isLast } = this.#stages[index]!;
    if (isContinued || isBackwardRunning() || this.#staysForBackward) return;
    // The backward pass begins with the last one.
    if (!isLast || !isGradEnabled()) unit.letGo();
  }

  /** Whether units that have been used stay whole. */
  get #staysForBackward(): boolean {
    return !this.#options.reshardAfterForward && isGradEnabled();
  }

  /** Somebody uses a unit outside of its modules' forward: mostly the backward pass. */
  #use(unit: ShardedUnit): void {
    unit.makeWhole();
    if (!isBackwardRunning()) return;
    const next = this.#order.after(unit);
    if (this.#options.prefetch) next?.gather();
  }
}

/**
 * Splits the parameters of `model` over the ranks of `mesh`, unit by unit (see `planUnits`), in place: each rank keeps an equal part
 * of each unit in float32, gathers it whole, in `computeDtype`, for its forward and its backward pass, and gets its part of the
 * averaged gradients. All ranks begin with rank 0's parameters. A mesh `{ replicate, shard }` shards along one axis and replicates
 * along the other; one with the axis `tensor` besides is that of a model that `parallelize` has divided along it.
 *
 *     const sharded = fullyShard(model, group, { computeDtype: 'bfloat16' });
 *     const optimizer = new AdamW(sharded.parameters(), { learningRate: 3e-4 });
 *
 * Parameters of the model that are used elsewhere than in its modules are gathered too, on all ranks alike, and stay as they are then until
 * the next forward pass: `wholeParameters` has those of after a step. Throws a RooflineError
 * for what is not a model, is sharded already, or has no parameters, a DTypeError for parameters that are not float32, and a
 * CollectiveError where the ranks' models or options differ. A collective.
 */
export function fullyShard<Model extends ShardableModule>(
  model: Model,
  mesh: Mesh | ProcessGroup,
  options: FullyShardOptions = {},
): FullySharded<Model> {
  return new FullySharded(model, mesh, options);
}

/** The same, each disposed when the next is asked for. */
function* eachFreed(wholes: Iterable<[string, Tensor]>): Generator<[string, Tensor]> {
  for (const whole of wholes) {
    yield whole;
    whole[1].dispose();
  }
}

/** The modules in the order of the model, each with its unit. */
function stagesOf(
  model: ShardableModule,
  plans: readonly { readonly modules: readonly ShardableModule[] }[],
  units: readonly ShardedUnit[],
): Stage[] {
  const unitOf = new Map(
    plans.flatMap(({ modules }, i) => modules.map((module) => [module, units[i]!] as const)),
  );
  const inOrder = [...model.children()].flatMap(([, module]) => {
    const unit = unitOf.get(module);
    return unit ? [{ module, unit }] : [];
  });
  const last = inOrder.findLastIndex(({ unit }) => unit !== inOrder.at(-1)!.unit) + 1;
  return inOrder.map(({ module, unit }, i) => ({
    ...{ module, unit },
    isContinued: inOrder[i + 1]?.unit === unit,
    isLast: i >= last,
  }));
}
