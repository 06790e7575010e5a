import { checkCount, describeValue, wrongArgument } from '../../base/check-value.ts';
import { RooflineError } from '../../base/errors.ts';
import { tracing } from '../tracing.ts';

/**
 * Where random numbers come from: a seed, and how many blocks of the counter have been used. Equal seeds and
 * calls give equal numbers on every device. Make it outside of a compiled function, whose replays go on where it is.
 */
export class Generator {
  readonly seed: number;
  #offset: number;

  /**
   * `seed` is a whole number from 0 to 2^53 - 1. Throws a RooflineError (code SEED, or RANGE for an offset that is no count),
   * and a CompileError in a compiled function, which would begin anew in each call where its replays go on.
   */
  constructor(seed: number, offset = 0) {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new RooflineError(
        'SEED',
        `Generator: the seed must be a whole number from 0 to 2^53 - 1, not ${describeValue(seed)}.`,
      );
    }
    checkCount('Generator', 'the offset', offset);
    tracing.active?.refuse(
      'a Generator is made, and replays would go on in its sequence where the function begins it anew',
      'Make it outside, or give the seed alone',
    );
    this.seed = seed;
    this.#offset = offset;
  }

  /**
   * The next unused block of four random words; with the seed, the whole state. Setting it throws a RooflineError (code RANGE)
   * for no count. Both throw a CompileError in a compiled function, whose replays would neither set it nor see it move.
   */
  get offset(): number {
    tracing.active?.refuse("a Generator's offset is read, which each run moves", 'Read it outside');
    return this.#offset;
  }

  set offset(offset: number) {
    checkCount('Generator', 'the offset', offset);
    tracing.active?.refuse("a Generator's offset is set, which replays would not", 'Set it before each call');
    this.#offset = offset;
  }

  /** Gives what goes back to here, once an op has failed; internal. */
  mark(): () => void {
    const offset = this.#offset;
    return () => (this.#offset = offset);
  }

  /** Takes the random words for `count` elements, and returns the first block that holds them. */
  take(count: number): number {
    checkCount('Generator.take', 'the count', count);
    const first = this.#offset;
    this.#offset += Math.ceil(count / 4);
    return first;
  }
}

/** Throws a RooflineError (code ARGUMENT), which names `owner`, unless `generator` is one. */
export function checkGenerator(owner: string, generator: Generator): void {
  if (generator instanceof Generator) return;
  throw wrongArgument(owner, 'the generator', 'a Generator, as of new Generator(seed)', generator);
}

/** Used where neither a generator nor a seed is given. It starts from seed 0 in every process. */
export const defaultGenerator = new Generator(0);
