import { AutogradError } from '../../base/errors.ts';
import { type Generator, type GeneratorState, withoutMoves } from './generator.ts';

/** A call that takes random words. Each of its runs, the eager one and each replay, takes new ones. */
export interface Draw {
  readonly generator: Generator;
  /** How many elements. */
  readonly count: number;
  /** The place of the latest run's words. */
  readonly place: GeneratorState;
  /** Takes the words of a run; returns their place. */
  take(): GeneratorState;
}

/** What happens to draws while a function runs: they are recorded, or must repeat recorded ones. */
interface Frame {
  readonly kind: 'record' | 'repeat';
  readonly draws: Draw[];
  /** How many of `repeat` have been repeated. */
  position: number;
  readonly outer: Frame | null;
}

let innermost: Frame | null = null;

/** A draw of `count` elements from `generator`; no words are taken yet. */
export function drawFrom(generator: Generator, count: number): Draw {
  const recorders: Frame[] = [];
  let frame = innermost;
  for (; frame?.kind === 'record'; frame = frame.outer) recorders.push(frame);
  const draw = frame ? repeated(frame, generator, count) : new FreshDraw(generator, count);
  for (const { draws } of recorders) draws.push(draw);
  return draw;
}

/** Runs `fn`; the draws of its calls are added to `draws`. */
export function recordDraws<T>(draws: Draw[], fn: () => T): T {
  return within('record', draws, fn);
}

/**
 * Runs `fn`, whose calls get the numbers of the latest runs of `draws`, one after the other; afterwards generators are where
 * they were, also those that `fn` seeds. Throws an AutogradError if the calls are not those recorded.
 */
export function repeatDraws<T>(draws: readonly Draw[], fn: () => T): T {
  return withoutMoves(() => within('repeat', [...draws], fn));
}

/** Whether draws are being recorded or repeated, so that each must be seen. */
export function areDrawsFollowed(): boolean {
  return innermost !== null;
}

function within<T>(kind: Frame['kind'], draws: Draw[], fn: () => T): T {
  const frame: Frame = { kind, draws, position: 0, outer: innermost };
  innermost = frame;
  try {
    return fn();
  } finally {
    innermost = frame.outer;
  }
}

class FreshDraw implements Draw {
  readonly generator: Generator;
  readonly count: number;
  place: GeneratorState = { seed: 0, offset: 0 };

  constructor(generator: Generator, count: number) {
    this.generator = generator;
    this.count = count;
  }

  take(): GeneratorState {
    this.place = this.generator.takePlace(this.count);
    return this.place;
  }
}

function repeated(frame: Frame, generator: Generator, count: number): Draw {
  const first = frame.draws[frame.position++];
  // A generator that was seeded since is the same one; one that the function makes has the same seed.
  const isSame = first?.generator === generator || first?.place.seed === generator.seed;
  if (!first || !isSame || first.count !== count) {
    throw new AutogradError(
      `checkpoint: the function draws ${count} random numbers of seed ${generator.seed} in the backward pass, where in the ` +
        `forward pass it drew ${first ? `${first.count} of seed ${first.place.seed}` : 'no more'}; let it do the same each time.`,
    );
  }
  return {
    generator,
    count,
    get place() {
      return first.place;
    },
    take: () => first.place,
  };
}
