import { lastUses } from '../graph/liveness.ts';
import type { Binding } from '../executable/executable.ts';
import type { Graph } from '../graph/graph.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { DeviceBuffer } from '@roofline/cuda/host';
import { blockBytes } from '@roofline/cuda/parts';
import { type ArenaPart, type Gap, type PlacedPart, arenaBytes, gapsAt, planArena } from './arena-plan.ts';
import { takenOver } from './in-place.ts';

/** A part that several storages use one after the other. */
interface NeededPart extends ArenaPart {
  readonly numbers: readonly number[];
}

type StoragePart = NeededPart & PlacedPart;

/** The bytes of each workspace, by the index of the call that asks for it. */
export type WorkspaceBytes = ReadonlyMap<number, readonly number[]>;

/** The layout of one piece of memory for a graph's intermediates, results and gradients. */
export class Arena {
  /** 0 for a graph that makes nothing. */
  readonly byteLength: number;
  /** In the order of their offsets. */
  readonly #parts: readonly StoragePart[];

  /** With gaps for the `workspaces`, where they are known. */
  constructor(graph: Graph, workspaces: WorkspaceBytes = new Map()) {
    const parts = partsOf(graph);
    const gaps = [...workspaces].flatMap(([call, sizes]) =>
      sizes.map((byteLength): ArenaPart => ({ byteLength, first: call, last: call })),
    );
    const plan = planArena([...parts, ...gaps]);
    this.#parts = parts
      .map(({ numbers }, i) => ({ ...plan[i]!, numbers }))
      .toSorted((a, b) => a.offset - b.offset);
    this.byteLength = arenaBytes(plan);
  }

  /** The bindings of the storages if the arena is `memory`. */
  bindings(memory: Storage): Map<number, Binding> {
    return new Map(
      this.#parts.flatMap(({ numbers, offset }) =>
        numbers.map((number) => [number, { storage: memory, byteOffset: offset }] as const),
      ),
    );
  }

  /** The parts that no call after `call` needs. */
  freedAfter(call: number): Gap[] {
    return this.#parts.filter(({ last }) => last === call);
  }

  /** The free memory for workspaces of `call`, in an arena at `address`. */
  workspacesOf(call: number, address: number): ArenaWorkspaces {
    return new ArenaWorkspaces(() => gapsAt(this.#parts, call, this.byteLength), address);
  }
}

/** From which call to which each intermediate, result and gradient is needed. */
export function partsOf(graph: Pick<Graph, 'calls' | 'storages' | 'kept'>): NeededPart[] {
  const { calls, storages, kept } = graph;
  const firstUses = new Map<number, number>();
  calls.forEach(({ inputs, outputs }, at) => {
    for (const { storage } of [...inputs, ...outputs])
      if (!firstUses.has(storage)) firstUses.set(storage, at);
  });
  const over = takenOver(graph);
  const groups = calls.map((call) => [call]);
  const parts = new Map<number, NeededPart>();
  // Results and gradients are needed past the last call. An input's last use precedes that of what takes its memory over.
  [...lastUses(graph, groups), [...kept]].forEach((numbers, last) => {
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

/** Gives out what is free of an arena during one call, as its workspaces. */
export class ArenaWorkspaces {
  /** The bytes of each workspace asked for. */
  readonly asked: number[] = [];
  readonly taken: Gap[] = [];
  readonly #address: number;
  readonly #findGaps: () => readonly Gap[];
  /** Null before the first workspace: most calls have none. */
  #gaps: readonly Gap[] | null = null;

  constructor(findGaps: () => readonly Gap[], address: number) {
    this.#findGaps = findGaps;
    this.#address = address;
  }

  /** Takes a workspace from the smallest gap that is large enough; null if there is none. */
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
