import { isDeepStrictEqual } from 'node:util';
import type { Call, Operand, Program } from '../graph/program.ts';
import { isCast } from './is-op.ts';

/** A first result that nobody else needs any more is kept for a repetition's readers if it has no more bytes than these. */
const mostBytesKept = 2 ** 16;

/**
 * A program without calls that do again what an earlier one has done: the same op with the same attributes, of operands that
 * nobody has written in between. Who reads their results reads those of the first. Results that are returned, or written by
 * anybody else, are made as they were. So are those whose first form nobody needs until then, as in a checkpoint's second
 * run: it would have to be kept in memory in between.
 */
export function withoutRepeatedCalls(program: Program): Program {
  const repeats = new Repeats(program);
  const calls = program.calls.flatMap((call, at) => repeats.next(call, at) ?? []);
  return calls.length === program.calls.length ? program : { ...program, calls };
}

class Repeats {
  readonly #program: Program;
  /** The place of the last call that uses a storage. */
  readonly #lastUses = new Map<number, number>();
  /** How many calls write a storage. */
  readonly #writers = new Map<number, number>();
  /** How often a storage has been written so far. */
  readonly #versions = new Map<number, number>();
  /** The calls that may be repeated, by op and operands. */
  readonly #seen = new Map<string, Call[]>();
  readonly #opNumbers = new Map<Call['op'], number>();
  /** By the storages of repeated results, those of the first ones. */
  readonly #moves = new Map<number, number>();

  constructor(program: Program) {
    this.#program = program;
    program.calls.forEach(({ inputs, outputs }, at) => {
      for (const { storage } of [...inputs, ...outputs]) this.#lastUses.set(storage, at);
      for (const { storage } of outputs) count(this.#writers, storage);
    });
  }

  /** The next call of the program over what stays; null where it only repeats. */
  next(given: Call, at: number): Call | null {
    const isMoved = given.inputs.some(({ storage }) => this.#moves.has(storage));
    const call = isMoved ? { ...given, inputs: given.inputs.map((input) => this.#moved(input)) } : given;
    const key = this.#isPure(call) ? this.#keyOf(call) : null;
    if (key !== null) {
      const known = this.#seen.get(key);
      const first = known?.find((other) => isDeepStrictEqual(other.attributes, call.attributes));
      if (first && this.#mayServe(first, call, at)) return this.#moveResults(first, call);
      if (!known) this.#seen.set(key, [call]);
      else if (first) known[known.indexOf(first)] = call;
      else known.push(call);
    }
    for (const { storage } of call.outputs) count(this.#versions, storage);
    return call;
  }

  #moved(operand: Operand): Operand {
    const storage = this.#moves.get(operand.storage);
    return storage === undefined ? operand : { ...operand, storage };
  }

  /** Whether a call gives nothing but outputs that are its alone, the same for the same operands. */
  #isPure(call: Call): boolean {
    const { op, outputs, attributes, live } = call;
    return (
      live === null &&
      !op.mutates &&
      !this.#castsParameter(call) &&
      isPlain(attributes) &&
      outputs.length > 0 &&
      new Set(outputs.map(({ storage }) => storage)).size === outputs.length &&
      outputs.every(
        ({ storage }) =>
          this.#program.storages[storage]!.source.kind === 'made' && this.#writers.get(storage) === 1,
      )
    );
  }

  /** Those are left to `carryLowPrecisionCopies`, which tells them apart by when a parameter is updated. */
  #castsParameter({ op, inputs }: Call): boolean {
    return isCast(op) && this.#program.storages[inputs[0]!.storage]!.source.kind === 'captured';
  }

  #keyOf({ op, inputs, outputs }: Call): string {
    let number = this.#opNumbers.get(op);
    if (number === undefined) this.#opNumbers.set(op, (number = this.#opNumbers.size));
    const read = inputs.map((input) => [
      input.storage,
      this.#versions.get(input.storage) ?? 0,
      ...layoutOf(input),
    ]);
    const made = outputs.map((output) => [
      this.#program.storages[output.storage]!.byteLength,
      ...layoutOf(output),
    ]);
    return JSON.stringify([number, read, made]);
  }

  /** Whether readers of what `call` makes can read what `first` has made, and memory holds hardly more then. */
  #mayServe(first: Call, call: Call, at: number): boolean {
    const { kept } = this.#program;
    return call.outputs.every(({ storage, byteLength }, i) => {
      const from = first.outputs[i]!.storage;
      const isThere = kept.has(from) || this.#lastUses.get(from)! >= at;
      return !kept.has(storage) && (isThere || byteLength <= mostBytesKept);
    });
  }

  #moveResults(first: Call, call: Call): null {
    call.outputs.forEach(({ storage }, i) => {
      const to = first.outputs[i]!.storage;
      this.#moves.set(storage, to);
      this.#lastUses.set(to, Math.max(this.#lastUses.get(to)!, this.#lastUses.get(storage)!));
    });
    return null;
  }
}

function layoutOf({ dtype, shape, strides, offset }: Operand): unknown[] {
  return [dtype, shape, strides, offset];
}

function count(counts: Map<number, number>, storage: number): void {
  counts.set(storage, (counts.get(storage) ?? 0) + 1);
}

/** Whether attributes say all that they are: neither a function nor an object with a state of its own. */
function isPlain(value: unknown): boolean {
  if (value === null) return true;
  if (typeof value !== 'object') return typeof value !== 'function' && typeof value !== 'symbol';
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || Array.isArray(value)) && Object.values(value).every(isPlain);
}
