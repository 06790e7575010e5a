import { checkFunction, checkText } from '@roofline/cuda/host';
import { AutogradError } from '../base/errors.ts';
import { extentOf } from '../tensor/storage/extent.ts';
import { type Draw, recordDraws } from '../tensor/random/draw.ts';
import { currentRange } from '../tensor/ranges/range.ts';
import { keep } from '../tensor/lifetime/scope.ts';
import { Tensor } from '../tensor/tensor.ts';
import type { ComputeOp } from './op.ts';

/** A call of an op whose results may be kept rather than made again. */
export interface RepeatableCall {
  /** The op's name. */
  readonly op: string;
  /** The names of the ranges that are open around it, outermost first. */
  readonly range: readonly string[];
  /** Of all its results. */
  readonly bytes: number;
}

/** What of a call's op is looked at. */
type CalledOp = Pick<ComputeOp<never>, 'name' | 'mutates'>;

/** Results of the call of this index among those of a function, and their storages' versions as they were made. */
interface KeptCall {
  readonly index: number;
  readonly results: readonly Tensor[];
  readonly versions: readonly number[];
}

/** The results that a function's calls have left for its second run. */
export class KeptResults {
  readonly #keeps: (call: RepeatableCall) => boolean;
  readonly #calls: KeptCall[] = [];
  readonly #names: string[] = [];

  constructor(keeps: (call: RepeatableCall) => boolean) {
    this.#keeps = keeps;
  }

  /** Handles to all that is kept, in their order, for the tape to save. Throws an AutogradError where one was written since. */
  get tensors(): Tensor[] {
    for (const { index, results, versions } of this.#calls) {
      const isWritten = results.some((x, i) => x.storage.writtenSince(versions[i]!, extentOf(x)));
      if (isWritten) throw writtenSince(this.#names[index]!);
    }
    return this.#calls.flatMap(({ results }) => [...results]);
  }

  /** Notes a call that has run, of an op that makes its results. */
  note({ name }: CalledOp, results: readonly Tensor[]): void {
    const index = this.#names.push(name) - 1;
    const bytes = results.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (!this.#keeps({ op: name, range: currentRange(), bytes })) return;
    const versions = results.map(({ storage }) => storage.version);
    this.#calls.push({ index, results: results.map((x) => keep(handleTo(x))), versions });
  }

  /** Lets go of what is kept, once the tape has saved it. */
  dispose(): void {
    for (const { results } of this.#calls) for (const result of results) result.dispose();
  }

  /** Finds the results of calls one after the other; `saved` are those of `tensors`, as the tape gives them back. */
  repeater(saved: readonly Tensor[]): Repeater {
    let at = 0;
    const kept = new Map(
      this.#calls.map(({ index, results }) => [index, saved.slice(at, (at += results.length))] as const),
    );
    return new Repeater(this.#names, kept);
  }
}

/** What a second run finds of the first. */
export class Repeater {
  readonly #names: readonly string[];
  readonly #kept: ReadonlyMap<number, readonly Tensor[]>;
  #next = 0;

  constructor(names: readonly string[], kept: ReadonlyMap<number, readonly Tensor[]>) {
    this.#names = names;
    this.#kept = kept;
  }

  /** The results of the next call, to be disposed of; null if they are to be made. Throws an AutogradError for another call. */
  resultsOf({ name }: CalledOp): Tensor[] | null {
    const index = this.#next++;
    if (this.#names[index] !== name) {
      throw new AutogradError(
        `selectiveCheckpoint: the function calls ${name} in the backward pass, where in the forward pass it called ` +
          `${this.#names[index] ?? 'no more'}; let it do the same each time.`,
      );
    }
    return this.#kept.get(index)?.map(handleTo) ?? null;
  }
}

interface Frame {
  readonly of: KeptResults | Repeater;
  readonly outer: Frame | null;
}

let innermost: Frame | null = null;

/** Runs `fn`; results of its calls are kept. */
export function keepResults<T>(kept: KeptResults, fn: () => T): T {
  return within(kept, fn);
}

/** Runs `fn` again, with kept results in place of what made them. */
export function repeatResults<T>(repeater: Repeater, fn: () => T): T {
  return within(repeater, fn);
}

function within<T>(of: Frame['of'], fn: () => T): T {
  innermost = { of, outer: innermost };
  try {
    return fn();
  } finally {
    innermost = innermost.outer;
  }
}

/**
 * Runs `fn`, whose calls `selectiveCheckpoint` neither keeps nor expects again: those that a function does not make in each of its
 * runs, such as gathers of sharded parameters. Throws what `fn` throws, and a RooflineError (code ARGUMENT) unless it is a function.
 */
export function notFollowed<T>(fn: () => T): T {
  checkFunction('notFollowed', 'what it runs', fn);
  const outer = innermost;
  innermost = null;
  try {
    return fn();
  } finally {
    innermost = outer;
  }
}

/**
 * Runs `fn`, whose calls `selectiveCheckpoint` sees as one of the name `name`: it keeps all that `fn` returns, and then does not run it
 * again, or nothing that is made inside. For results that are small where those of the single calls are not. `fn` returns new tensors,
 * as many in each run, and writes to no others. Throws what `fn` throws, a RooflineError (code ARGUMENT) for a name that is no text or
 * no function, and an AutogradError in a checkpoint where `fn` draws random numbers, which a run without it would give to others.
 */
export function asOneCall(name: string, fn: () => Tensor[]): Tensor[] {
  checkText('asOneCall', 'the name', name);
  checkFunction('asOneCall', 'what it runs', fn);
  return areResultsFollowed() ? keptOrMade({ name }, () => notFollowed(() => withoutDraws(name, fn))) : fn();
}

function withoutDraws<T>(name: string, fn: () => T): T {
  const draws: Draw[] = [];
  const result = recordDraws(draws, fn);
  if (draws.length === 0) return result;
  throw new AutogradError(
    `asOneCall: ${name} draws random numbers, and would not where it is kept; draw them outside, and give it the tensors.`,
  );
}

/** Whether results of calls are being kept or repeated, so that each must be seen. */
export function areResultsFollowed(): boolean {
  return innermost !== null;
}

/** The results of a call of `op`: those kept of an earlier run, or what `run` makes, which may be kept for a later one. */
export function keptOrMade(op: CalledOp, run: () => Tensor[]): Tensor[] {
  if (op.mutates) return run();
  const keepers: KeptResults[] = [];
  let frame: Frame | null = innermost;
  for (; frame?.of instanceof KeptResults; frame = frame.outer) keepers.push(frame.of);
  const results = (frame?.of as Repeater | undefined)?.resultsOf(op) ?? run();
  for (const keeper of keepers) keeper.note(op, results);
  return results;
}

function handleTo({ storage, dtype, shape, strides, offset }: Tensor): Tensor {
  return new Tensor(storage.retain(), dtype, shape, strides, offset);
}

function writtenSince(op: string): AutogradError {
  return new AutogradError(
    `selectiveCheckpoint: a result of ${op} that is kept for the backward pass was written in place after that; keep another, or write to a copy.`,
  );
}
