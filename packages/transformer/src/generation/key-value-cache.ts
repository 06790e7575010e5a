import {
  AutogradError,
  DTypeError,
  RooflineError,
  ShapeError,
  type Tensor,
  checkCount,
  checkDevice,
  checkOptions,
  type Device,
  copyInPlace,
  dependOn,
  describeValue,
  fillInPlace,
  arange,
  formatShape,
  greaterEqual,
  indexCopyInPlace,
  isGradEnabled,
  keep,
  permute,
  requireTensors,
  scope,
  slice,
  zeros,
} from '@roofline/tensor-core';
import { currentTrace, sameShape } from '@roofline/tensor-core/kernel-api';
import { type Padding, checkPaddedBatch, checkPadding, startsOf } from './padding.ts';

/** Keys and values of all positions so far, [B, H, S, d]. */
export interface KeysAndValues {
  readonly keys: Tensor;
  readonly values: Tensor;
  /** Which of them there are, [S] or [B, S] bool; all where it is not given. */
  readonly visible?: Tensor;
  /** How many at the beginning of each sequence only fill the batch up; none where it is not given. */
  readonly padding?: Padding;
}

/** Options of a `KeyValueCache`. */
export interface KeyValueCacheOptions {
  /**
   * How many tokens at the beginning of each sequence of a batch only fill it up, with any ids, so that all end together; no other token
   * sees them, and positions are counted after them. Their own logits mean nothing. Default none.
   */
  readonly padding?: Padding;
}

/** What a layer's attention asks of its cache. */
export interface AttentionCache {
  /** That of the next call's first token: a number, or int32 or int64 [1]. */
  readonly position: number | Tensor;
  /** Stores keys and values [B, H, T, d] of the next T positions, and gives those of all positions up to them. */
  append(keys: Tensor, values: Tensor): KeysAndValues;
}

/**
 * The keys and values of the positions that a model has seen, so that its next call gives it new tokens alone:
 *
 *     const cache = new KeyValueCache(model.config.contextLength);
 *     const logits = noGrad(() => model.forward(prompt, cache)); // [B, T] ids
 *     const next = noGrad(() => model.forward(token, cache)); // [B, 1]: the one after them
 *
 * Prompts of several lengths go into one batch that is filled up at the left, of which `padding` says how far:
 *
 *     const cache = new KeyValueCache(64, { padding: [2, 0] });
 *     const logits = noGrad(() => model.forward(idsOf([[0, 0, 5], [7, 8, 9]]), cache));
 *
 * It takes 2 · layers · capacity · B · keyValueHeads · headDimension elements, from the first call on. Positions are absolute:
 * keys have been turned by theirs, and values of deeper layers depend on all positions before them, so the oldest
 * cannot be dropped alone; `clear` it and give the model the tokens that remain.
 *
 * A compiled function may make one, and use it; one that existed before is read through a `CacheStep`, because a replay
 * would not count positions: advancing it inside throws a CompileError.
 */
export class KeyValueCache {
  /** The most positions that it holds. */
  readonly capacity: number;
  /** Null where no sequence is filled up. */
  readonly padding: Padding | null;
  #starts: Tensor | null = null;
  readonly #layers: LayerCache[] = [];
  /** The compiled function that makes it. */
  readonly #maker = currentTrace();
  readonly #readLength = () => this.#length;
  #length = 0;
  #disposed = false;

  constructor(capacity: number, options: KeyValueCacheOptions = {}) {
    checkCount('KeyValueCache', 'the capacity', capacity, 1);
    checkOptions('KeyValueCache', options, ['padding']);
    const { padding } = options;
    if (padding !== undefined) checkPadding('KeyValueCache', padding);
    this.capacity = capacity;
    this.padding = padding?.some((count) => count > 0) ? [...padding] : null;
  }

  /** Where each sequence begins, int32 [B, 1], on the device of the first call; null where none is filled up. */
  startsOn(device: Device): Tensor | null {
    checkDevice('KeyValueCache.startsOn', device);
    if (this.padding === null) return null;
    return (this.#starts ??= keep(startsOf(this.padding, device)));
  }

  /** Positions held; the next call's tokens come after them. */
  get length(): number {
    return currentTrace() === this.#maker ? this.#length : dependOn(this.#readLength);
  }

  /** The part of one layer of the model, counted from 0. */
  layer(index: number): LayerCache {
    checkCount('KeyValueCache.layer', 'the index', index);
    for (let next = this.#layers.length; next <= index; next++) this.#layers.push(new LayerCache(this));
    return this.#layers[index]!;
  }

  /**
   * Counts `count` positions, once every layer has stored them. Throws a ShapeError for more than it holds.
   */
  advance(count: number): void {
    checkCount('KeyValueCache.advance', 'the count', count);
    this.checkRoom(count);
    this.#refuseReplays('advance');
    this.#length += count;
  }

  /** Throws a ShapeError unless `count` more positions fit. */
  checkRoom(count: number): void {
    checkCount('KeyValueCache.checkRoom', 'the count', count);
    if (this.#disposed) throw new ShapeError('KeyValueCache: it has been disposed; make a new one.');
    if (this.#length + count > this.capacity) {
      throw new ShapeError(
        `KeyValueCache: ${count} more tokens do not fit after ${this.#length} of ${this.capacity}; clear() it and ` +
          'give the model the tokens that it is to see.',
      );
    }
  }

  /** Throws a ShapeError where a sequence has nothing yet but what fills it up. */
  checkBegun(): void {
    if (this.padding === null || this.#length >= Math.max(...this.padding)) return;
    throw new ShapeError(
      `CacheStep: the cache holds ${this.#length} positions, of sequences filled up by ${this.padding.join(', ')}; give the model all of that ` +
        'with the KeyValueCache itself.',
    );
  }

  /** Forgets all positions, but keeps the memory, which is zeroed. */
  clear(): void {
    this.#refuseReplays('clear');
    this.#length = 0;
    for (const layer of this.#layers) layer.clear();
  }

  /** Frees the memory. Disposing twice is harmless. */
  dispose(): void {
    this.#disposed = true;
    this.#length = 0;
    for (const layer of this.#layers) layer.dispose();
    this.#starts?.dispose();
    this.#starts = null;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #refuseReplays(method: string): void {
    const trace = currentTrace();
    if (trace === this.#maker) return;
    trace?.refuse(
      `KeyValueCache.${method} counts positions on the host, which replays would not`,
      'Give the model a CacheStep, and count outside; or make the cache inside',
    );
  }
}

/**
 * The keys and values of one layer, as [capacity, B, H, d]: positions outermost, so that those of a call are one
 * contiguous block, and the positions so far one slice of which a matrix product reads [B, H, S, d] as it lies.
 */
export class LayerCache implements AttentionCache {
  readonly #cache: KeyValueCache;
  #keys: Tensor | null = null;
  #values: Tensor | null = null;

  constructor(cache: KeyValueCache) {
    if (!(cache instanceof KeyValueCache)) {
      throw new RooflineError('ARGUMENT', `LayerCache: takes a KeyValueCache, not ${describeValue(cache)}.`);
    }
    this.#cache = cache;
  }

  /** The position of the next call's first token. */
  get position(): number {
    return this.#cache.length;
  }

  /**
   * Stores keys and values [B, H, T, d] of the next T positions, and gives views of those of all positions up to
   * them. Throws a ShapeError or DTypeError for others than the first ones' batch, heads and dtype, a ShapeError where the
   * layer has not stored the positions before them, and an AutogradError where they would need a gradient: what is stored has
   * none.
   */
  append(keys: Tensor, values: Tensor): KeysAndValues {
    checkStored('LayerCache.append', keys, values);
    this.#cache.checkRoom(keys.shape[2]!);
    // Those before it would be zeros, which attention sees.
    if (!this.#keys && this.position > 0) {
      throw new ShapeError(
        `KeyValueCache: this layer has stored none of its ${this.position} positions; a cache serves one model, from the ` +
          'first token on.',
      );
    }
    this.#keys ??= this.#allocate(keys);
    this.#values ??= this.#allocate(values);
    // Now: a program that reads them later may not make them.
    this.#cache.startsOn(keys.device);
    const seen = this.#seenBy(keys);
    return { keys: this.#store(this.#keys, keys), values: this.#store(this.#values, values), ...seen };
  }

  /** What a call's tokens see of sequences that are filled up. A single token is masked, if every sequence has begun. */
  #seenBy({ shape, device }: Tensor): Pick<KeysAndValues, 'visible' | 'padding'> {
    const { padding } = this.#cache;
    if (padding === null) return {};
    checkPaddedBatch(padding.length, shape[0]!);
    const end = this.position + shape[2]!;
    if (shape[2] !== 1 || end <= Math.max(...padding)) return { padding };
    const starts = this.#cache.startsOn(device)!;
    return { visible: scope(() => greaterEqual(arange(0, end, 1, { dtype: 'int32', device }), starts)) };
  }

  /**
   * Stores keys and values [B, H, 1, d] at `position`, int32 or int64 [1], and gives views of the whole memory,
   * [B, H, capacity, d]. Throws as `append` and as `indexCopyInPlace`, and a ShapeError before any position is held.
   */
  write(position: Tensor, keys: Tensor, values: Tensor): KeysAndValues {
    requireTensors('LayerCache.write', [position]);
    checkStored('LayerCache.write', keys, values);
    this.#cache.checkRoom(0);
    if (!this.#keys || !this.#values) {
      throw new ShapeError(
        'CacheStep: the cache holds nothing yet; give the model the first tokens with the KeyValueCache itself.',
      );
    }
    this.#cache.checkBegun();
    return { keys: this.#put(this.#keys, position, keys), values: this.#put(this.#values, position, values) };
  }

  /** Called when the positions are forgotten. */
  clear(): void {
    // A CacheStep reads all of the memory: what it leaves out has weight 0, and 0 · NaN would be seen.
    for (const stored of [this.#keys, this.#values]) if (stored) fillInPlace(stored, 0);
  }

  #allocate({ shape, dtype, device }: Tensor): Tensor {
    const [batch, heads, , dimension] = shape as [number, number, number, number];
    return keep(zeros([this.#cache.capacity, batch, heads, dimension], { dtype, device }));
  }

  #store(stored: Tensor, added: Tensor): Tensor {
    this.#checkAlike(stored, added);
    const { position } = this;
    const end = position + added.shape[2]!;
    return scope(() => {
      copyInPlace(slice(stored, 0, position, end), permute(added, [2, 0, 1, 3]));
      return permute(slice(stored, 0, 0, end), [1, 2, 0, 3]);
    });
  }

  #put(stored: Tensor, position: Tensor, added: Tensor): Tensor {
    this.#checkAlike(stored, added);
    if (added.shape[2] !== 1)
      throw new ShapeError(`LayerCache.write: takes one token a sequence, not ${added.shape[2]}.`);
    return scope(() => {
      indexCopyInPlace(stored, 0, position, permute(added, [2, 0, 1, 3]));
      return permute(stored, [1, 2, 0, 3]);
    });
  }

  #checkAlike(stored: Tensor, added: Tensor): void {
    const [batch, heads, , dimension] = added.shape as [number, number, number, number];
    const row = formatShape([batch, heads, dimension]);
    if (formatShape(stored.shape.slice(1)) !== row) {
      throw new ShapeError(
        `KeyValueCache: it holds [batch, heads, dimension] ${formatShape(stored.shape.slice(1))}, and got ${row}; ` +
          'a cache serves one batch of one model.',
      );
    }
    if (stored.dtype !== added.dtype) {
      throw new DTypeError(
        `KeyValueCache: it holds ${stored.dtype}, and got ${added.dtype}; give all calls of a cache one model, all inside ` +
          'autocast or all outside of it.',
      );
    }
  }

  dispose(): void {
    this.#keys?.dispose();
    this.#values?.dispose();
    this.#keys = this.#values = null;
  }
}

function checkStored(owner: string, keys: Tensor, values: Tensor): void {
  requireTensors(owner, [keys, values]);
  for (const { shape } of [keys, values]) {
    if (shape.length === 4) continue;
    throw new ShapeError(`${owner}: takes [batch, heads, T, d], not ${formatShape(shape)}.`);
  }
  if (!sameShape(keys.shape, values.shape)) {
    throw new ShapeError(
      `${owner}: keys ${formatShape(keys.shape)} and values ${formatShape(values.shape)} must be of one shape.`,
    );
  }
  if (isGradEnabled() && (keys.requiresGrad || values.requiresGrad)) {
    throw new AutogradError(
      'KeyValueCache: gradients do not pass through stored keys and values; run the model in noGrad(), or ' +
        'without a cache.',
    );
  }
}
