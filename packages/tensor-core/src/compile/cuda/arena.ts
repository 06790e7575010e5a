import { isIntermediate } from '../graph/liveness.ts';
import type { Binding } from '../executable/executable.ts';
import type { Graph } from '../graph/graph.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { DeviceBuffer } from '@roofline/cuda/host';
import { blockBytes } from '@roofline/cuda/parts';
import { type ArenaPart, type Gap, type PlacedPart, arenaBytes, gapsIn, planArena } from './arena-plan.ts';
import { type Branches, oneChain, spanOf } from './branches.ts';
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
  readonly #branches: Branches;
  /** In the order of their offsets. */
  readonly #parts: readonly StoragePart[];

  /** With gaps for the `workspaces`, where they are known. */
  constructor(graph: Graph, branches: Branches = oneChain, workspaces: WorkspaceBytes = new Map()) {
    this.#branches = branches;
    const parts = partsOf(graph, branches);
    const gaps = [...workspaces].flatMap(([call, sizes]) =>
      sizes.map((byteLength): ArenaPart => ({ byteLength, ...spanOf(branches, call) })),
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

  /**
   * The free memory for workspaces of `call`, in an arena at `address`. `taken` are the workspaces of calls that still may run.
   */
  workspacesOf(call: number, address: number, taken: readonly PlacedPart[]): ArenaWorkspaces {
    const findGaps = () => {
      const lying = [...this.#parts, ...taken].toSorted((a, b) => a.offset - b.offset);
      return gapsIn(lying, spanOf(this.#branches, call), this.byteLength);
    };
    return new ArenaWorkspaces(findGaps, address);
  }
}

/** From which call to which each intermediate, result and gradient is needed, and may be by calls that run beside those. */
export function partsOf(
  graph: Pick<Graph, 'calls' | 'storages' | 'kept'>,
  branches: Branches = oneChain,
): NeededPart[] {
  const { calls, storages, kept } = graph;
  const spans = new Map<number, { first: number; last: number }>();
  calls.forEach(({ inputs, outputs }, at) => {
    const { first, last } = spanOf(branches, at);
    for (const { storage } of [...inputs, ...outputs]) {
      if (!kept.has(storage) && !isIntermediate(graph, storage)) continue;
      const span = spans.get(storage);
      if (span) span.last = Math.max(span.last, last);
      else spans.set(storage, { first, last });
    }
  });
  // Results and gradients are needed past the last call.
  for (const number of kept)
    spans.set(number, { first: spans.get(number)?.first ?? calls.length, last: calls.length });
  const over = takenOver(graph, branches);
  const parts = new Map<number, NeededPart>();
  // An input's last use precedes that of what takes its memory over.
  for (const [number, { first, last }] of [...spans].toSorted(([, a], [, b]) => a.last - b.last)) {
    const { byteLength } = storages[number]!;
    const from = over.get(number);
    const before = from === undefined ? null : parts.get(from)!;
    if (from !== undefined) parts.delete(from);
    parts.set(number, {
      numbers: [...(before?.numbers ?? []), number],
      byteLength,
      first: before?.first ?? first,
      last,
    });
  }
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
