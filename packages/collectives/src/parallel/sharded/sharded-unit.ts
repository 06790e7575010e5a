import {
  type DType,
  type Device,
  type Tensor,
  addInPlace,
  alias,
  byteSize,
  cast,
  contiguous,
  copyInPlace,
  empty,
  fillInPlace,
  keep,
  noGrad,
  scope,
  slice,
  view,
  zeros,
} from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import type { ProcessGroup } from '../../group/process-group.ts';
import { allReduce } from '../../ops/all-reduce.ts';
import { allGather, reduceScatter } from '../../ops/gather-scatter.ts';
import { broadcastAll } from '../broadcast-all.ts';
import type { NamedTensor } from '../check-agreement.ts';
import { alignedSize, layOut, viewAt } from '../flat-memory.ts';

/** How a unit travels. */
export interface UnitOptions {
  readonly shard: ProcessGroup;
  /** Ranks that hold the same shard; null for none. */
  readonly replicate: ProcessGroup | null;
  readonly computeDtype: DType;
  readonly reduceDtype: DType;
}

/** This rank's part of a parameter: elements `start` to `end` of the flattened one. */
export interface ShardedParameter {
  readonly name: string;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
  /** One-dimensional, float32: what optimizers update. */
  readonly leaf: Tensor;
}

/** A parameter's place in the unit's flat memory, and the tensor that the model calculates with. */
interface Place {
  readonly name: string;
  readonly whole: Tensor;
  readonly start: number;
}

/**
 * Parameters that are gathered together. They lie one after the other in flat memory, of which each rank keeps an equal piece
 * in float32, with a leaf for its part of each parameter; the whole is there, in the dtype of the computation, only between
 * `gather` and `letGo`.
 */
export class ShardedUnit {
  readonly parameters: readonly ShardedParameter[];
  readonly #options: UnitOptions;
  readonly #places: readonly Place[];
  readonly #pieceSize: number;
  /** The whole; its memory is away most of the time. */
  readonly #flat: Tensor;
  readonly #piece: Tensor;
  /** The gather under way, and the version of the piece that it sends. */
  #coming: { readonly whole: Tensor; readonly version: number } | null = null;
  /** The version of the piece that was gathered last. */
  #gathered = 0;
  #onUse: () => void = () => {};
  /** The function being compiled that has what is here, or on its way; null outside of one, or for nothing. */
  #trace: object | null = null;

  /** Takes the place of `named`, which all ranks of `joined`, group by group, get from the first and which are disposed. */
  constructor(named: readonly NamedTensor[], options: UnitOptions, joined: readonly ProcessGroup[]) {
    const { shard, computeDtype } = options;
    const { device } = named[0]![1];
    this.#options = options;
    const elementBytes = Math.min(byteSize(computeDtype), byteSize('float32'));
    const tensors = named.map(([, tensor]) => tensor);
    const { starts, size } = layOut(tensors, elementBytes);
    this.#pieceSize = alignedSize(size / shard.size, elementBytes);
    [this.#flat, this.#piece] = noGrad(() => [
      keep(zeros([this.#pieceSize * shard.size], { dtype: computeDtype, device })),
      keep(zeros([this.#pieceSize], { device })),
    ]);
    this.#places = named.map(([name, tensor], i) => {
      const whole = noGrad(() => viewAt(this.#flat, starts[i]!, tensor));
      return { name, start: starts[i]!, whole: whole.requiresGrad_(tensor.requiresGrad) };
    });
    this.#take(tensors, joined);
    this.parameters = this.#leaves();
    this.letGo();
  }

  /** Copies this rank's parts, as rank 0 has them, and frees the whole. */
  #take(tensors: readonly Tensor[], joined: readonly ProcessGroup[]): void {
    for (const group of joined) broadcastAll(group, tensors, () => 0);
    noGrad(() =>
      scope(() => {
        for (const [i, { name, start }] of this.#places.entries()) {
          const tensor = tensors[i]!;
          const [from, to] = this.#ownPart(start, tensor.size);
          if (from >= to) continue;
          const flat = view(contiguous(tensor), [tensor.size]);
          copyInPlace(this.#partOf(this.#piece, name, to - from), slice(flat, 0, from, to));
        }
      }),
    );
    for (const tensor of tensors) tensor.dispose();
  }

  /** Which elements of a parameter at `start` lie in this rank's piece. */
  #ownPart(start: number, size: number): [from: number, to: number] {
    const first = this.#options.shard.rank * this.#pieceSize - start;
    return [Math.min(size, Math.max(0, first)), Math.min(size, Math.max(0, first + this.#pieceSize))];
  }

  #leaves(): ShardedParameter[] {
    return this.#places.flatMap(({ name, whole, start: at }): ShardedParameter[] => {
      const [start, end] = this.#ownPart(at, whole.size);
      if (start >= end) return [];
      const leaf = noGrad(() => keep(this.#partOf(this.#piece, name, end - start)));
      return [{ name, shape: whole.shape, start, end, leaf: leaf.requiresGrad_(whole.requiresGrad) }];
    });
  }

  get device(): Device {
    return this.#piece.device;
  }

  /** What is left of this rank's piece where no parameter lies in it. */
  get padding(): Tensor {
    return this.#piece;
  }

  /** The tensors that the model calculates with, by their names. */
  get wholes(): readonly NamedTensor[] {
    return this.#places.map(({ name, whole }) => [name, whole] as const);
  }

  /** Those that a backward pass is to bring gradients. */
  get trained(): readonly Tensor[] {
    return this.#places.map(({ whole }) => whole).filter(({ requiresGrad }) => requiresGrad);
  }

  /** Of the whole, gaps and all. */
  get elements(): number {
    return this.#flat.size;
  }

  /** Whether the whole is here. */
  get isWhole(): boolean {
    return !this.#flat.storage.isAway;
  }

  /** Called when somebody uses a parameter that is away, who needs it `makeWhole`. */
  set onUse(onUse: () => void) {
    this.#onUse = onUse;
  }

  /** Begins to bring the whole here, unless it is, or is on its way. */
  gather(): void {
    this.#leaveOtherTrace();
    if (this.isWhole || this.#coming !== null) return;
    this.#trace = currentTrace();
    const { shard, computeDtype } = this.#options;
    const whole = noGrad(() =>
      scope(() => {
        const piece = computeDtype === 'float32' ? this.#piece : cast(this.#piece, computeDtype);
        return keep(allGather(piece, shard));
      }),
    );
    this.#coming = { whole, version: this.#piece.storage.version };
  }

  /** Replays find nothing that was gathered before them, and leave nothing that they have gathered. */
  #leaveOtherTrace(): void {
    if (!(this.isWhole || this.#coming) || this.#trace === currentTrace()) return;
    this.forgetGathered();
    this.letGo();
  }

  /** Forgets what was gathered and not used: the optimizer may change the parameters now. All ranks do so in the same place. */
  forgetGathered(): void {
    this.#coming?.whole.dispose();
    this.#coming = null;
    if (!this.isWhole) this.#trace = null;
  }

  /** Has the whole here. */
  makeWhole(): void {
    this.gather();
    if (this.isWhole) return;
    const { whole, version } = this.#coming!;
    const { storage } = this.#flat;
    storage.moveIn(whole.storage);
    whole.dispose();
    this.#coming = null;
    // What was saved of other values must not go into a gradient.
    if (version !== this.#gathered) storage.noteWrite({ start: 0, end: storage.byteLength });
    this.#gathered = version;
  }

  /** Gives the whole's memory back. */
  letGo(): void {
    if (!this.#coming) this.#trace = null;
    if (this.isWhole) this.#flat.storage.letGo(() => this.#onUse());
  }

  /** Begins to average the gradients over the ranks, zeros where there is none; the result is this rank's piece. */
  reduce(): Tensor {
    const { shard, reduceDtype } = this.#options;
    return noGrad(() =>
      scope(() => {
        const flat = empty([this.elements], { dtype: reduceDtype, device: this.device });
        this.#fillIn(flat);
        return keep(reduceScatter(flat, shard, { op: 'average' }));
      }),
    );
  }

  /** Takes the gradients away from the parameters and writes them to `flat`, zeros elsewhere. */
  #fillIn(flat: Tensor): void {
    let end = 0;
    const skipTo = (start: number) => {
      if (start > end) fillInPlace(slice(flat, 0, end, start), 0);
      end = start;
    };
    for (const { whole, start } of this.#places) {
      const { grad } = whole;
      if (grad === null) continue;
      skipTo(start);
      end = start + whole.size;
      copyInPlace(view(slice(flat, 0, start, end), whole.shape), grad);
      forget(whole);
    }
    skipTo(flat.size);
  }

  /** Adds a result of `reduce` to the gradients of this rank's leaves, but for those in `unused`. */
  deliver(reduced: Tensor, unused: ReadonlySet<string>): void {
    const { replicate } = this.#options;
    noGrad(() =>
      scope(() => {
        const averaged = replicate ? allReduce(reduced, replicate, { op: 'average' }) : reduced;
        // Waits for it: what it was sent from is let go then, and what went wrong is an error of this pass.
        void averaged.address;
        const piece = averaged.dtype === 'float32' ? averaged : cast(averaged, 'float32');
        for (const { name, leaf } of this.parameters) {
          if (unused.has(name) || !this.#placeOf(name).whole.requiresGrad) continue;
          const part = this.#partOf(piece, name, leaf.size);
          if (leaf.grad) addInPlace(leaf.grad, part);
          else leaf.grad = keep(alias(part));
        }
      }),
    );
    reduced.dispose();
  }

  /** Forgets what a backward pass that failed has left. */
  forgetGradients(): void {
    for (const { whole } of this.#places) forget(whole);
  }

  /** All ranks' pieces of the parameters, in float32. */
  *wholeParameters(): Generator<[name: string, tensor: Tensor]> {
    yield* this.#gatheredOf(this.#piece);
  }

  /** The same of what `of` gives for each of this rank's parts; zeros for null. */
  *wholesOf(of: (parameter: ShardedParameter) => Tensor | null): Generator<[name: string, tensor: Tensor]> {
    const piece = this.#pieceOf(of);
    try {
      yield* this.#gatheredOf(piece);
    } finally {
      piece.dispose();
    }
  }

  *#gatheredOf(piece: Tensor): Generator<[name: string, tensor: Tensor]> {
    const flat = noGrad(() => allGather(piece, this.#options.shard));
    try {
      for (const { name, whole, start } of this.#places)
        yield [name, noGrad(() => viewAt(flat, start, whole))];
    } finally {
      flat.dispose();
    }
  }

  #pieceOf(of: (parameter: ShardedParameter) => Tensor | null): Tensor {
    return noGrad(() => {
      const piece = keep(zeros([this.#pieceSize], { device: this.device }));
      for (const parameter of this.parameters) {
        const part = of(parameter);
        if (part) scope(() => copyInPlace(this.#partOf(piece, parameter.name, parameter.leaf.size), part));
      }
      return piece;
    });
  }

  #placeOf(name: string): Place {
    return this.#places.find((place) => place.name === name)!;
  }

  /** This rank's part of a parameter, of so many elements, in a piece. */
  #partOf(piece: Tensor, name: string, size: number): Tensor {
    const { start, whole } = this.#placeOf(name);
    const [from] = this.#ownPart(start, whole.size);
    const at = start + from - this.#options.shard.rank * this.#pieceSize;
    return slice(piece, 0, at, at + size);
  }

  dispose(): void {
    this.forgetGradients();
    this.forgetGathered();
    for (const { leaf } of this.parameters) leaf.dispose();
    for (const { whole } of this.#places) whole.dispose();
    this.#flat.dispose();
    this.#piece.dispose();
  }
}

function forget(whole: Tensor): void {
  whole.grad?.dispose();
  whole.grad = null;
}
