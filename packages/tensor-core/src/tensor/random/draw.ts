import { AutogradError } from '../../base/errors.ts';
import type { Generator } from './generator.ts';

/** A call that takes random words. Each of its runs, one in eager and one in each replay, takes them anew. */
export interface Draw {
  readonly seed: number;
  /** Elements. */
  readonly count: number;
  /** Where in the generator's sequence the words of the latest run begin. */
  readonly offset: number;
  /** Takes the words of a run; gives their offset. */
  take(): number;
}

/** What draws meet while a function runs: they are written down, or must repeat those that were. */
interface Frame {
  readonly kind: 'record' | 'repeat';
  readonly draws: Draw[];
  /** Of `repeat`: how many have been repeated. */
  position: number;
  readonly outer: Frame | null;
}

let innermost: Frame | null = null;

/** A draw of `count` elements from `generator`; no words are taken yet. */
export function drawFrom(generator: Generator, count: number): Draw {
  const recorders: Frame[] = [];
  let frame = innermost;
  for (; frame?.kind === 'record'; frame = frame.outer) recorders.push(frame);
  const draw = frame ? repeated(frame, generator.seed, count) : new FreshDraw(generator, count);
  for (const { draws } of recorders) draws.push(draw);
  return draw;
}

/** Runs `fn`; the draws of its calls are added to `draws`. */
export function recordDraws<T>(draws: Draw[], fn: () => T): T {
  return within({ kind: 'record', draws, position: 0, outer: innermost }, fn);
}

/**
 * Runs `fn`, whose calls get the numbers of the latest runs of `draws`, one after the other; no generator moves. Throws an
 * AutogradError where they are not the calls that were written down.
 */
export function repeatDraws<T>(draws: readonly Draw[], fn: () => T): T {
  return within({ kind: 'repeat', draws: [...draws], position: 0, outer: innermost }, fn);
}

/** Whether draws are being written down or repeated: each must be seen. */
export function areDrawsFollowed(): boolean {
  return innermost !== null;
}

function within<T>(frame: Frame, fn: () => T): T {
  innermost = frame;
  try {
    return fn();
  } finally {
    innermost = frame.outer;
  }
}

class FreshDraw implements Draw {
  readonly count: number;
  offset = 0;
  readonly #generator: Generator;

  constructor(generator: Generator, count: number) {
    this.count = count;
    this.#generator = generator;
  }

  get seed(): number {
    return this.#generator.seed;
  }

  take(): number {
    this.offset = this.#generator.take(this.count);
    return this.offset;
  }
}

function repeated(frame: Frame, seed: number, count: number): Draw {
  const first = frame.draws[frame.position++];
  if (first?.seed !== seed || first.count !== count) {
    throw new AutogradError(
      `checkpoint: the function draws ${count} random numbers of seed ${seed} in the backward pass, where in the forward ` +
        `pass it drew ${first ? `${first.count} of seed ${first.seed}` : 'no more'}; let it do the same each time.`,
    );
  }
  return {
    seed,
    count,
    get offset() {
      return first.offset;
    },
    take: () => first.offset,
  };
}
