import { lastUses } from '../../../program/dead-calls.ts';
import type { Binding, Program } from '../../../program/program.ts';
import type { Storage } from '../../../tensor/storage/storage.ts';
import type { DeviceBuffer } from '../../device.ts';
import {
  type Gap,
  type PlacedPart,
  aligned,
  arenaBytes,
  gapsAt,
  lengthened,
  planArena,
} from './arena-plan.ts';

/** A part of the arena, and the program's storage that it is. */
interface StoragePart extends PlacedPart {
  readonly number: number;
}

/**
 * One piece of memory for what a program's calls hand on to each other, its results and its gradients: where in it each
 * storage lies.
 */
export class Arena {
  /** 0 for a program that hands on nothing. */
  readonly byteLength: number;
  /** In the order of their offsets. */
  readonly #parts: readonly StoragePart[];
  readonly #places: ReadonlyMap<number, Gap>;
  readonly #doneBy: readonly number[];

  /**
   * `doneBy` gives for each call the last one that may begin before it ends: what a call uses is not handed out again until
   * then, as far as no more than `bytes` are needed at a time. Default: the call itself, which runs alone.
   */
  constructor(
    program: Program,
    doneBy: readonly number[] = program.calls.map((_, call) => call),
    bytes = Infinity,
  ) {
    const { calls, storages, kept } = program;
    this.#doneBy = doneBy;
    const groups = calls.map((call) => [call]);
    const firstUses = new Map<number, number>();
    const doneUses = new Map<number, number>();
    calls.forEach(({ inputs, outputs }, at) => {
      for (const { storage } of [...inputs, ...outputs]) {
        if (!firstUses.has(storage)) firstUses.set(storage, at);
        doneUses.set(storage, Math.max(doneUses.get(storage) ?? 0, doneBy[at]!));
      }
    });
    // Results and gradients stay behind the last call.
    const parts = [...lastUses(program, groups), [...kept]].flatMap((numbers, last) =>
      numbers.map((number) => {
        const { byteLength } = storages[number]!;
        return { number, byteLength, first: firstUses.get(number) ?? last, last };
      }),
    );
    const until = parts.map(({ number }) => doneUses.get(number) ?? 0);
    this.#parts = planArena(lengthened(parts, until, bytes))
      .map((placed, i) => ({ ...placed, number: parts[i]!.number }))
      .toSorted((a, b) => a.offset - b.offset);
    this.#places = new Map(this.#parts.map((part) => [part.number, part]));
    this.byteLength = arenaBytes(this.#parts);
  }

  /** Where the storages lie if the arena is `memory`. */
  bindings(memory: Storage): Map<number, Binding> {
    return new Map(
      this.#parts.map(({ number, offset }) => [number, { storage: memory, byteOffset: offset }]),
    );
  }

  /** Where a storage lies; undefined for those that lie elsewhere. */
  placeOf(number: number): Gap | undefined {
    return this.#places.get(number);
  }

  /** The storages that no call behind `call` needs. */
  freedBehind(call: number): Gap[] {
    return this.#parts.filter(({ last }) => last === call);
  }

  /** What of the arena, if it begins at `address`, workspaces of `call` can have. */
  workspacesOf(call: number, address: number): ArenaWorkspaces {
    return new ArenaWorkspaces((until) => gapsAt(this.#parts, call, this.byteLength, until), address, [
      ...new Set([this.#doneBy[call]!, call]),
    ]);
  }
}

/** What one call leaves free of an arena, for its workspaces. */
export class ArenaWorkspaces {
  readonly taken: Gap[] = [];
  readonly #address: number;
  /** Until which call they had better be free, in the order of preference. */
  readonly #until: readonly number[];
  readonly #findGaps: (until: number) => readonly Gap[];
  /** Filled with the first workspace: most calls have none. */
  readonly #gaps = new Map<number, readonly Gap[]>();

  constructor(findGaps: (until: number) => readonly Gap[], address: number, until: readonly number[]) {
    this.#findGaps = findGaps;
    this.#address = address;
    this.#until = until;
  }

  /** From the smallest gap that is large enough; null without one. */
  take(byteLength: number): DeviceBuffer | null {
    const bytes = aligned(byteLength);
    for (const until of this.#until) {
      const gaps = this.#gaps.get(until) ?? this.#findGaps(until);
      this.#gaps.set(until, gaps);
      const fitting = gaps.flatMap((gap) => this.#leftOf(gap)).filter((gap) => gap.byteLength >= bytes);
      if (fitting.length === 0) continue;
      const { offset } = fitting.reduce((a, b) => (b.byteLength < a.byteLength ? b : a));
      this.taken.push({ offset, byteLength: bytes });
      return { address: this.#address + offset, byteLength: bytes };
    }
    return null;
  }

  /** What is left of a gap beside what has been taken. */
  #leftOf(gap: Gap): Gap[] {
    return this.taken.reduce<Gap[]>((left, taken) => left.flatMap((piece) => without(piece, taken)), [gap]);
  }
}

/** The pieces of a gap before and behind what is taken. */
function without(gap: Gap, taken: Gap): Gap[] {
  const [end, takenEnd] = [gap.offset + gap.byteLength, taken.offset + taken.byteLength];
  if (takenEnd <= gap.offset || end <= taken.offset) return [gap];
  return [
    { offset: gap.offset, byteLength: taken.offset - gap.offset },
    { offset: takenEnd, byteLength: end - takenEnd },
  ].filter(({ byteLength }) => byteLength > 0);
}
