import {
  type Device,
  type DeviceSpec,
  RooflineError,
  checkCount,
  checkDevice,
  checkNumber,
  checkOptions,
  checkText,
  keep,
  scope,
} from '@roofline/tensor-core';
import { type TokenSource, checkTokenSource } from './token-source.ts';
import { type TokenWindows, windowStarts, windowsAt } from './token-windows.ts';

/** Options of a `TokenLoader`. */
export interface TokenLoaderOptions {
  /** Windows of a batch, of all ranks together: a multiple of `ranks`. */
  readonly batch: number;
  /** Tokens of a window. */
  readonly contextLength: number;
  /** Which random order the windows have. Default 0. */
  readonly seed?: number;
  /** Which part of the tokens windows are cut from. Default 'train'. */
  readonly split?: 'train' | 'validation';
  /** The share of the tokens, at their end, that is for validation: at least 0, below 1. Default 0; the same for both splits. */
  readonly validationShare?: number;
  /** This process among `ranks`, from 0 on, which gets its part of each batch. Default 0. */
  readonly rank?: number;
  /** How many processes share each batch. Default 1. */
  readonly ranks?: number;
  /** Default 'cpu'. */
  readonly device?: Device | DeviceSpec;
}

/** The place of a loader in its data, as JSON holds it. */
export interface TokenLoaderState {
  /** How many windows all ranks together have drawn. */
  readonly windows: number;
  readonly seed: number;
  readonly contextLength: number;
  /** The tokens that windows are cut from, `begin` to `end` without the last. */
  readonly range: readonly [begin: number, end: number];
  /** That of the source. */
  readonly fingerprint: string;
}

/**
 * Batches of windows of tokens, for ever, in a random order: each token at which a window can begin comes once before any comes
 * again, in another order. A batch is the next `batch` windows of one stream, of which each rank takes its rows in turn, so that
 * the ranks together read what one process alone would. Train and validation windows share no token.
 *
 * @example
 * ```ts
 * import { scope } from '@roofline/tensor-core';
 * import { TokenLoader, byteTokens } from '@roofline/transformer';
 *
 * const text = byteTokens('The roof is what the hardware allows.'); // or new TokenFile('data.bin')
 * const loader = new TokenLoader(text, { batch: 4, contextLength: 8, validationShare: 0.3 });
 * for (let step = 0; step < 3; step++)
 *   scope(() => {
 *     const { ids } = loader.next();
 *     console.log(ids.shape); // [4, 8]
 *   });
 * const state = JSON.stringify(loader.state()); // with the weights, say
 * loader.load(JSON.parse(state)); // goes on with the fourth batch
 * ```
 */
export class TokenLoader implements Disposable {
  readonly #source: TokenSource;
  readonly #options: Required<TokenLoaderOptions>;
  readonly #range: readonly [begin: number, end: number];
  /** How many windows all ranks have drawn. */
  #windows = 0;
  /** The batch that comes next, on the device. */
  #prefetched: TokenWindows | null = null;

  /** Throws a RooflineError (code RANGE) for a part of the tokens without a token after a whole window. */
  constructor(source: TokenSource, options: TokenLoaderOptions) {
    checkTokenSource('TokenLoader', source);
    this.#source = source;
    this.#options = checked(options);
    this.#range = rangeOf(source, this.#options);
    if (this.#places < 1) throw tooShort(source, this.#options, this.#range);
  }

  /** How many windows there are before one comes again. */
  get windowsPerEpoch(): number {
    return this.#places;
  }

  /** This rank's rows of the next batch: `ids` and `targets`, [batch / ranks, contextLength]. */
  next(): TokenWindows {
    const { ids, targets } = this.#prefetched ?? this.#read();
    this.#windows += this.#options.batch;
    if (this.#prefetched === null) return { ids, targets };
    this.#prefetched = null;
    // Tensors of the scope that is running now, as those that were not prefetched are.
    const windows = { ids: ids.detach(), targets: targets.detach() };
    for (const tensor of [ids, targets]) tensor.dispose();
    return windows;
  }

  /**
   * Reads the next batch and sends it to the device now. Called after a step was started and before its loss is read, it keeps the
   * reading from the time between steps: a GPU is at work meanwhile, and after the step has the copy alone to wait for, from
   * pinned memory. Does nothing where it was called since the last batch.
   */
  prefetch(): void {
    if (this.#prefetched !== null) return;
    this.#prefetched = scope(() => {
      const windows = this.#read();
      for (const tensor of [windows.ids, windows.targets]) keep(tensor);
      return windows;
    });
  }

  /** What `load` needs to go on with the next batch; a prefetched one has not been drawn yet. */
  state(): TokenLoaderState {
    const { seed, contextLength } = this.#options;
    const { fingerprint } = this.#source;
    return { windows: this.#windows, seed, contextLength, range: this.#range, fingerprint };
  }

  /**
   * Goes on where a loader was whose `state()` this is. `batch`, `rank` and `ranks` may be others: with the same `batch` any
   * number of ranks that divides it gets the same batches, in other parts; with another `batch` the stream of windows is cut at
   * other places. Throws a RooflineError (code STATE), and stays where it is, for other tokens, or another split, seed or
   * context length: the order of windows would be another one.
   */
  load(state: TokenLoaderState): void {
    const own = this.state();
    checkOptions('TokenLoader.load', state, Object.keys(own));
    checkCount('TokenLoader.load', 'windows', state.windows);
    for (const name of ['fingerprint', 'contextLength', 'seed', 'range'] as const) {
      const [saved, here] = [String(state[name]), String(own[name])];
      if (saved === here) continue;
      throw new RooflineError(
        'STATE',
        `TokenLoader.load: the state is of ${name} ${saved}, this loader of ${here}: it would go on with other windows. ` +
          'Make the loader with the same tokens and options, or begin anew without the state.',
      );
    }
    this.dispose();
    this.#windows = state.windows;
  }

  /** Frees the batch that was prefetched; the source stays open. */
  dispose(): void {
    this.#prefetched?.ids.dispose();
    this.#prefetched?.targets.dispose();
    this.#prefetched = null;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  get #places(): number {
    return this.#range[1] - this.#range[0] - this.#options.contextLength;
  }

  #read(): TokenWindows {
    const { batch, contextLength, seed, rank, ranks, device } = this.#options;
    const rows = batch / ranks;
    const order = { places: this.#places, seed };
    const starts = windowStarts(this.#windows + rank * rows, rows, order);
    const begins = starts.map((start) => this.#range[0] + start);
    return windowsAt(this.#source, begins, contextLength, device);
  }
}

const defaults = {
  ...{ seed: 0, split: 'train', validationShare: 0, rank: 0, ranks: 1, device: 'cpu' },
} as const;
const optionNames = ['batch', 'contextLength', ...Object.keys(defaults)];

function checked(given: TokenLoaderOptions): Required<TokenLoaderOptions> {
  checkOptions('TokenLoader', given, optionNames);
  const isGiven = ([, value]: [string, unknown]) => value !== undefined;
  const options = {
    ...defaults,
    ...Object.fromEntries(Object.entries(given).filter(isGiven)),
  } as Required<TokenLoaderOptions>;
  const { batch, contextLength, seed, split, validationShare, rank, ranks, device } = options;
  for (const [name, value] of Object.entries({ batch, contextLength, ranks }))
    checkCount('TokenLoader', name, value, 1);
  for (const [name, value] of Object.entries({ seed, rank })) checkCount('TokenLoader', name, value);
  checkNumber(
    'TokenLoader',
    'validationShare',
    validationShare,
    'at least 0 and below 1',
    (share) => share >= 0 && share < 1,
  );
  checkText('TokenLoader', 'split', split);
  checkDevice('TokenLoader', device);
  if (split !== 'train' && split !== 'validation')
    throw wrong(`split must be 'train' or 'validation', not '${String(split)}'`);
  if (rank >= ranks) throw wrong(`rank ${rank} is none of ${ranks} ranks, which are 0 to ${ranks - 1}`);
  if (batch % ranks !== 0)
    throw wrong(`batch ${batch} is of all ${ranks} ranks together, and must be a multiple of that`);
  return options;
}

function wrong(what: string): RooflineError {
  return new RooflineError('RANGE', `TokenLoader: ${what}.`);
}

function rangeOf({ length }: TokenSource, options: Required<TokenLoaderOptions>): readonly [number, number] {
  const trainEnd = length - Math.floor(length * options.validationShare);
  return options.split === 'train' ? [0, trainEnd] : [trainEnd, length];
}

function tooShort(
  { name, length }: TokenSource,
  { split, contextLength, validationShare }: Required<TokenLoaderOptions>,
  [begin, end]: readonly [number, number],
): RooflineError {
  const share = split === 'train' ? 'a smaller' : 'a larger';
  return wrong(
    `a window of ${contextLength} and the token after it need ${contextLength + 1} tokens, and ${split} has ${end - begin} of the ` +
      `${length} of ${name} with validationShare ${validationShare}. Take a shorter contextLength, more text, or ${share} validationShare`,
  );
}
