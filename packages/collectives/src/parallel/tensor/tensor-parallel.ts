import {
  type Tensor,
  alias,
  contiguous,
  noGrad,
  reshape,
  scope,
  slice,
  transpose,
  view,
} from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { allGather } from '../../ops/gather-scatter.ts';
import type { FullySharded, RanksOfShards } from '../fully-sharded.ts';
import type { ShardedParameter } from '../sharded/sharded-unit.ts';
import type { DividableModel } from './dividable-model.ts';
import type { Division } from './divide-parameters.ts';

/** What a rank has of a whole parameter: elements `start` to `end` of the flattened box of it. */
export interface DividedParameter extends ShardedParameter {
  /** The elements along one dimension that the rank's division has; all where it is left out. */
  readonly box?: { readonly dimension: number; readonly from: number; readonly to: number };
  /** Whether it is another rank that writes it to a checkpoint. */
  readonly isCopy: boolean;
}

/** What ranks with different gradients agree on, where some have a parameter's alike. */
export interface RanksOfDivisions extends RanksOfShards {
  /** Whether this rank counts a parameter's gradient in the norm. */
  counts(parameter: Tensor): boolean;
}

/** The ranks that have a model together. */
interface Holders {
  readonly rank: number;
  readonly size: number;
  readonly ranks: readonly number[];
}

/**
 * A model whose layers are divided over ranks: made by `parallelize`. Optimizers get `parameters()`, this rank's parts. It is what
 * `saveSharded`, `loadSharded` and `saveWhole` of @roofline/transformer take.
 */
export class TensorParallel<Model extends DividableModel = DividableModel> {
  readonly module: Model;
  /** All ranks of the mesh, and those that share each layer. */
  readonly group: ProcessGroup;
  readonly tensorGroup: ProcessGroup;
  readonly #divisions: ReadonlyMap<string, Division>;
  readonly #sharded: FullySharded<Model> | null;
  readonly #release: () => void;

  /** Made by `parallelize`. */
  constructor(
    module: Model,
    groups: { readonly all: ProcessGroup; readonly tensor: ProcessGroup },
    divisions: ReadonlyMap<string, Division>,
    release: () => void,
    sharded: FullySharded<Model> | null = null,
  ) {
    this.module = module;
    this.group = groups.all;
    this.tensorGroup = groups.tensor;
    this.#divisions = divisions;
    this.#sharded = sharded;
    this.#release = release;
  }

  /** The same of a model that `fullyShard` has divided further, over the other axes of the mesh. */
  with(sharded: FullySharded<Model>): TensorParallel<Model> {
    const groups = { all: this.group, tensor: this.tensorGroup };
    return new TensorParallel(this.module, groups, this.#divisions, this.#release, sharded);
  }

  /** The ranks that have all of the model once, and this one among them. */
  get shardGroup(): Holders {
    const { tensorGroup, group } = this;
    if (this.#sharded === null) return tensorGroup;
    const { rank, size, ranks } = this.#sharded.shardGroup;
    // In a mesh a step along one axis is the same everywhere.
    const placeOf = (member: number) => group.ranks.indexOf(member);
    const besides = (member: number) =>
      tensorGroup.ranks.map((other) => group.ranks[placeOf(member) + placeOf(other) - group.rank]!);
    return {
      rank: rank * tensorGroup.size + tensorGroup.rank,
      size: size * tensorGroup.size,
      ranks: ranks.flatMap(besides),
    };
  }

  /** This rank's parts of all parameters: what optimizers take. */
  *parameters(): Generator<Tensor> {
    if (this.#sharded) yield* this.#sharded.parameters();
    else for (const [, parameter] of this.module.namedParameters()) yield parameter;
  }

  /** The same with their names, and which elements of a parameter of which shape each is. */
  *parts(): Generator<DividedParameter> {
    for (const part of this.#sharded?.parts() ?? ownParts(this.module)) {
      const { shape, dimension, copies, from, to } = this.#divisions.get(part.name)!;
      const isCopy = this.tensorGroup.rank % copies > 0;
      yield { ...part, shape, isCopy, ...(dimension !== null && { box: { dimension, from, to } }) };
    }
  }

  /** The names and shapes of all parameters whole, in the order of `wholeParameters`. */
  *shapes(): Generator<[name: string, shape: readonly number[]]> {
    const names = this.#sharded ? [...this.#sharded.shapes()].map(([name]) => name) : this.#divisions.keys();
    for (const name of names) yield [name, this.#divisions.get(name)!.shape];
  }

  /**
   * All parameters whole, one after the other; each is freed when the next is asked for. A collective: all ranks go through all of
   * them.
   */
  wholeParameters(): Generator<[name: string, parameter: Tensor]> {
    const held = this.#sharded?.wholeParameters() ?? this.module.namedParameters();
    return this.#wholes(held) as Generator<[name: string, parameter: Tensor]>;
  }

  /** The same of their gradients; null for those that have none. */
  wholeGradients(): Generator<[name: string, gradient: Tensor | null]> {
    return this.#wholes(this.#sharded?.wholeGradients() ?? gradientsOf(this.module));
  }

  *#wholes(
    held: Iterable<readonly [string, Tensor | null]>,
  ): Generator<[name: string, tensor: Tensor | null]> {
    for (const [name, part] of held) {
      const whole = part && noGrad(() => this.#whole(part, this.#divisions.get(name)!));
      yield [name, whole];
      whole?.dispose();
    }
  }

  #whole(part: Tensor, { shape, dimension, copies }: Division): Tensor {
    if (dimension === null) return alias(part);
    if (dimension === 1)
      return scope(() => contiguous(transpose(allGather(contiguous(transpose(part)), this.tensorGroup))));
    if (copies === 1) return allGather(part, this.tensorGroup);
    return scope(() => {
      const parts = this.tensorGroup.size / copies;
      const all = view(allGather(part, this.tensorGroup), [parts, copies, part.size]);
      return reshape(slice(all, 1, 0, 1), shape);
    });
  }

  /**
   * What clipping by the global norm and a GradientScaler need: each parameter counts once, on the rank that has it or, where several
   * have it, on the first of them.
   */
  get ranks(): RanksOfDivisions {
    const { tensorGroup } = this;
    const isCopy = new Set([...this.parts()].flatMap(({ isCopy, leaf }) => (isCopy ? [leaf] : [])));
    const shards = this.#sharded?.ranks;
    const over = (op: 'sum' | 'max') => (x: Tensor) => {
      shards?.[op](x);
      tensorGroup.allReduce(x, { op }).wait();
    };
    return { sum: over('sum'), max: over('max'), counts: (parameter) => !isCopy.has(parameter) };
  }

  /** Frees this rank's parameters: the model cannot be used any more. Disposing twice is harmless. */
  dispose(): void {
    this.#release();
    this.#sharded?.dispose();
    for (const [, parameter] of this.module.namedParameters()) parameter.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

function* ownParts(model: DividableModel): Generator<ShardedParameter> {
  for (const [name, leaf] of model.namedParameters())
    yield { name, shape: leaf.shape, start: 0, end: leaf.size, leaf };
}

function* gradientsOf(model: DividableModel): Generator<[string, Tensor | null]> {
  for (const [name, { grad }] of model.namedParameters()) yield [name, grad];
}
