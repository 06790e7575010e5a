import { RooflineError, checkCount, checkObject, describeValue, wrongArgument } from '@roofline/cuda/host';
import { dependOn, tracing } from '../tracing.ts';

/** A generator's place in its sequence, which is all that its next numbers depend on. */
export interface GeneratorState {
  readonly seed: number;
  /** The next unused block of four random words. */
  readonly offset: number;
}

/** Undoes the moves of each generator since the innermost `withoutMoves` began; null outside of one. */
let moved: Map<Generator, () => void> | null = null;

/**
 * A source of random numbers: a seed, and how many blocks of the counter have been used. Equal seeds and calls give equal
 * numbers on every device. Create it outside a compiled function, whose replays continue its sequence.
 */
export class Generator {
  #seed: number;
  #offset: number;
  readonly #readSeed = () => this.#seed;

  /**
   * `seed` is a whole number from 0 to 2^53 - 1. Throws a RooflineError (code SEED, or RANGE for an offset that is no count),
   * and a CompileError in a compiled function, which would start again in each call, whereas its replays continue.
   */
  constructor(seed: number, offset = 0) {
    checkSeed('Generator', seed);
    checkCount('Generator', 'the offset', offset);
    tracing.active?.refuse(
      'a Generator is made, and replays would go on in its sequence where the function begins it anew',
      'Make it outside, or give the seed alone',
    );
    this.#seed = seed;
    this.#offset = offset;
  }

  /** A compiled function that reads it has a specialization for each. */
  get seed(): number {
    return dependOn(this.#readSeed);
  }

  /**
   * The next unused block of four random words; with the seed it is the whole state. Setting it throws a RooflineError (code
   * RANGE) unless it is a count. Both throw a CompileError in a compiled function, whose replays would neither set it nor see
   * it move.
   */
  get offset(): number {
    tracing.active?.refuse("a Generator's offset is read, which each run moves", 'Read it outside');
    return this.#offset;
  }

  set offset(offset: number) {
    checkCount('Generator', 'the offset', offset);
    tracing.active?.refuse("a Generator's offset is set, which replays would not", 'Set it before each call');
    this.#moveTo(this.#seed, offset);
  }

  /**
   * Starts the sequence of a seed. Returns the generator. Throws a RooflineError (code SEED) unless it is a whole number from
   * 0 to 2^53 - 1, and a CompileError in a compiled function, whose replays would not do it.
   */
  manualSeed(seed: number): this {
    checkSeed('Generator.manualSeed', seed);
    tracing.active?.refuse('a Generator is seeded, which replays would not be', 'Seed it before each call');
    return this.#moveTo(seed, 0);
  }

  /**
   * The current state: saved with a checkpoint, it lets training continue with the numbers that would have come next. Throws a
   * CompileError in a compiled function, whose replays would not see it move.
   */
  stateDict(): GeneratorState {
    const { offset } = this;
    return { seed: this.#seed, offset };
  }

  /**
   * Continues from a state. Throws a RooflineError (code SEED, RANGE or ARGUMENT) for an invalid state, and a CompileError in
   * a compiled function, whose replays would not do it.
   */
  loadStateDict(state: GeneratorState): void {
    checkObject('Generator.loadStateDict', 'the state', state);
    const { seed, offset } = state;
    checkSeed('Generator.loadStateDict', seed);
    checkCount('Generator.loadStateDict', 'the offset', offset);
    tracing.active?.refuse(
      'the state of a Generator is loaded, which replays would not',
      'Load it before each call',
    );
    this.#moveTo(seed, offset);
  }

  #moveTo(seed: number, offset: number): this {
    if (moved?.has(this) === false) moved.set(this, this.mark());
    this.#seed = seed;
    this.#offset = offset;
    return this;
  }

  /** Returns a function that goes back to this place, for instance after an op has failed. @internal */
  mark(): () => void {
    const [seed, offset] = [this.#seed, this.#offset];
    return () => {
      this.#seed = seed;
      this.#offset = offset;
    };
  }

  /** Takes the random words for `count` elements, and returns the first block that holds them. */
  take(count: number): number {
    checkCount('Generator.take', 'the count', count);
    return this.takePlace(count).offset;
  }

  /** The same, with the current seed. @internal */
  takePlace(count: number): GeneratorState {
    const place = { seed: this.#seed, offset: this.#offset };
    this.#offset += Math.ceil(count / 4);
    return place;
  }
}

/** Runs `fn`, and afterwards moves generators that it has seeded, or set to another place, back to where they were. */
export function withoutMoves<T>(fn: () => T): T {
  const outer = moved;
  const own = (moved = new Map<Generator, () => void>());
  try {
    return fn();
  } finally {
    moved = outer;
    for (const goBack of own.values()) goBack();
  }
}

function checkSeed(owner: string, seed: number): void {
  if (Number.isSafeInteger(seed) && seed >= 0) return;
  throw new RooflineError(
    'SEED',
    `${owner}: the seed must be a whole number from 0 to 2^53 - 1, not ${describeValue(seed)}.`,
  );
}

/** Throws a RooflineError (code ARGUMENT), which names `owner`, unless `generator` is one. */
export function checkGenerator(owner: string, generator: Generator): void {
  if (generator instanceof Generator) return;
  throw wrongArgument(owner, 'the generator', 'a Generator, as of new Generator(seed)', generator);
}

/** The source of numbers if neither a generator nor a seed is given. It starts from seed 0 in every process. */
export const defaultGenerator = new Generator(0);
