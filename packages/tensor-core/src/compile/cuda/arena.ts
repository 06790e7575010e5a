import { lastUses } from '../graph/liveness.ts';
import type { Binding } from '../executable/executable.ts';
import type { Program } from '../graph/graph.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { DeviceBuffer } from '../../base/device-memory.ts';
import { blockBytes } from '../../cuda/memory/allocator.ts';
import { type ArenaPart, type Gap, type PlacedPart, arenaBytes, gapsAt, planArena } from './arena-plan.ts';
import { takenOver } from './in-place.ts';

/** What of an arena some of a program's storages need, one behind the other. */
interface NeededPart extends ArenaPart {
  readonly numbers: readonly number[];
}

type StoragePart = NeededPart & PlacedPart;

/** The bytes of calls' workspaces, by the places of the calls. */
export type WorkspaceBytes = ReadonlyMap<number, readonly number[]>;

/**
 * One piece of memory for what a program's calls hand on to each other, its results and its gradients: where in it each
 * storage lies.
 */
export class Arena {
  /** 0 for a program that hands on nothing. */
  readonly byteLength: number;
  /** In the order of their offsets. */
  readonly #parts: readonly StoragePart[];

  /** It has gaps for the `workspaces`, too, where they are known. */
  constructor(program: Program, workspaces: WorkspaceBytes = new Map()) {
    const parts = partsOf(program);
    const gaps = [...workspaces].flatMap(([call, sizes]) =>
      sizes.map((byteLength): ArenaPart => ({ byteLength, first: call, last: call })),
    );
    const plan = planArena([...parts, ...gaps]);
    this.#parts = parts
      .map(({ numbers }, i) => ({ ...plan[i]!, numbers }))
      .toSorted((a, b) => a.offset - b.offset);
    this.byteLength = arenaBytes(plan);
  }

  /** Where the storages lie if the arena is `memory`. */
  bindings(memory: Storage): Map<number, Binding> {
    return new Map(
      this.#parts.flatMap(({ numbers, offset }) =>
        numbers.map((number) => [number, { storage: memory, byteOffset: offset }] as const),
      ),
    );
  }

  /** The storages that no call behind `call` needs. */
  freedBehind(call: number): Gap[] {
    return this.#parts.filter(({ last }) => last === call);
  }

  /** What of the arena, if it begins at `address`, workspaces of `call` can have. */
  workspacesOf(call: number, address: number): ArenaWorkspaces {
    return new ArenaWorkspaces(() => gapsAt(this.#parts, call, this.byteLength), address);
  }
}

/** What a program's calls hand on, its results and its gradients: from when to when each is needed. */
export function partsOf(program: Pick<Program, 'calls' | 'storages' | 'kept'>): NeededPart[] {
  const { calls, storages, kept } = program;
  const firstUses = new Map<number, number>();
  calls.forEach(({ inputs, outputs }, at) => {
    for (const { storage } of [...inputs, ...outputs])
      if (!firstUses.has(storage)) firstUses.set(storage, at);
  });
  const over = takenOver(program);
  const groups = calls.map((call) => [call]);
  const parts = new Map<number, NeededPart>();
  // Results and gradients stay behind the last call. An input goes before what takes its memory over.
  [...lastUses(program, groups), [...kept]].forEach((numbers, last) => {
    for (const number of numbers) {
      const { byteLength } = storages[number]!;
      const from = over.get(number);
      const before = from === undefined ? null : parts.get(from)!;
      if (from !== undefined) parts.delete(from);
      const first = before?.first ?? firstUses.get(number) ?? last;
      parts.set(number, { numbers: [...(before?.numbers ?? []), number], byteLength, first, last });
    }
  });
  return [...parts.values()];
}

/** What one call leaves free of an arena, for its workspaces. */
export class ArenaWorkspaces {
  /** The bytes of each that was asked for. */
  readonly asked: number[] = [];
  readonly taken: Gap[] = [];
  readonly #address: number;
  readonly #findGaps: () => readonly Gap[];
  /** Null until the first workspace: most calls have none. */
  #gaps: readonly Gap[] | null = null;

  constructor(findGaps: () => readonly Gap[], address: number) {
    this.#findGaps = findGaps;
    this.#address = address;
  }

  /** From the smallest gap that is large enough; null without one. */
  take(byteLength: number): DeviceBuffer | null {
    const bytes = blockBytes(byteLength);
    this.asked.push(byteLength);
    this.#gaps ??= this.#findGaps();
    const fitting = this.#gaps.filter((gap) => gap.byteLength >= bytes);
    if (fitting.length === 0) return null;
    const gap = fitting.reduce((a, b) => (b.byteLength < a.byteLength ? b : a));
    const { offset } = gap;
    const rest = { offset: offset + bytes, byteLength: gap.byteLength - bytes };
    this.#gaps = [...this.#gaps.filter((other) => other !== gap), rest];
    this.taken.push({ offset, byteLength: bytes });
    return { address: this.#address + offset, byteLength: bytes };
  }
}
