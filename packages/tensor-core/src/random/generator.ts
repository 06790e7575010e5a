import { RooflineError } from '../errors.ts';

/**
 * Where random numbers come from: a seed, and how many blocks of the counter have been used. Equal seeds and
 * calls give equal numbers on every device.
 */
export class Generator {
  readonly seed: number;
  /** The next unused block of four random words; with the seed, the whole state. */
  offset: number;

  /** `seed` is a whole number from 0 to 2^53 - 1. Throws a RooflineError with code SEED. */
  constructor(seed: number, offset = 0) {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new RooflineError(
        'SEED',
        `Generator: the seed must be a whole number from 0 to 2^53 - 1, not ${seed}.`,
      );
    }
    this.seed = seed;
    this.offset = offset;
  }

  /** Takes the random words for `count` elements, and returns the first block that holds them. */
  take(count: number): number {
    const first = this.offset;
    this.offset += Math.ceil(count / 4);
    return first;
  }
}

/** Used where neither a generator nor a seed is given. It starts from seed 0 in every process. */
export const defaultGenerator = new Generator(0);
