import type { Operand } from '../graph/graph.ts';
import { extentOf } from '../../tensor/storage/extent.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import { type JointTime, nextWriteTime } from '../../tensor/storage/write-time.ts';
import type { Region } from '../../tensor/storage/write-versions.ts';
import type { CudaEvent, CudaStream } from '@roofline/cuda';

/** A parameter, in the storage `source`, and where its elements lie in a copy. */
export interface CopiedParameter {
  readonly source: Storage;
  readonly parameter: Operand;
  readonly output: Operand;
}

/** When copies were made: other streams must wait for it. */
export interface CastTime {
  readonly stream: CudaStream;
  readonly event: CudaEvent;
}

/** The region of a storage that a copy holds. */
interface Part {
  readonly source: Storage;
  readonly region: Region;
}

/** Copies by the storage of their first parameter: graphs over the same parameters share them. */
const copiesOf = new WeakMap<Storage, Map<string, LowPrecisionCopy>>();

/** The elements of one parameter, or of several side by side, in a lower dtype; kept as long as some graph holds it. */
export class LowPrecisionCopy {
  /** The copy's memory, whose references are its holders. */
  readonly memory: Storage;
  readonly #parts: readonly Part[];
  #lastCast: CastTime | null = null;
  /** When it was last known to be fresh, other than by `#freshAfter`. */
  #freshAt = 0;
  /** The last runs of living graphs that keep it fresh. */
  readonly #freshAfter = new Set<JointTime>();

  private constructor(parameters: readonly CopiedParameter[], memory: Storage) {
    this.#parts = parameters.map(({ source, parameter }) => ({ source, region: extentOf(parameter) }));
    this.memory = memory;
  }

  /**
   * The copy of these parameters, at least one, in this layout; `allocate` gives its memory if there is none yet. Comes with
   * one reference, the caller's to release.
   */
  static of(parameters: readonly CopiedParameter[], allocate: () => Storage): LowPrecisionCopy {
    const known = knownCopy(parameters);
    if (known) {
      known.memory.retain();
      return known;
    }
    const { source } = parameters[0]!;
    const copy = new LowPrecisionCopy(parameters, allocate());
    let copies = copiesOf.get(source);
    if (!copies) copiesOf.set(source, (copies = new Map()));
    copies.set(keyOf(parameters), copy);
    return copy;
  }

  /** Whether such a copy exists already. */
  static isKnown(parameters: readonly CopiedParameter[]): boolean {
    return knownCopy(parameters) !== null;
  }

  /** Whether it must be made, for the first time or because a parameter has been written without it. */
  get isStale(): boolean {
    let freshAt = this.#freshAt;
    for (const { time } of this.#freshAfter) freshAt = Math.max(freshAt, time);
    if (freshAt === 0) return true;
    return this.#parts.some(({ source, region }) => source.writtenSince(freshAt, region));
  }

  /** Null before the first cast. */
  get lastCast(): CastTime | null {
    return this.#lastCast;
  }

  noteCast(time: CastTime): void {
    this.#lastCast = time;
    this.#freshAt = nextWriteTime();
  }

  /** It is fresh whenever `run` is noted: after runs of a graph that writes both it and its parameters, or neither. */
  freshAfter(run: JointTime): void {
    this.#freshAfter.add(run);
  }

  /** The graph of `run` is gone. */
  noMoreRuns(run: JointTime): void {
    this.#freshAt = Math.max(this.#freshAt, run.time);
    this.#freshAfter.delete(run);
  }
}

function knownCopy(parameters: readonly CopiedParameter[]): LowPrecisionCopy | null {
  const known = copiesOf.get(parameters[0]!.source)?.get(keyOf(parameters));
  return known && known.memory.references > 0 ? known : null;
}

function keyOf(parameters: readonly CopiedParameter[]): string {
  return parameters
    .map(({ source, parameter, output }) => {
      const [from, to] = [extentOf(parameter), extentOf(output)];
      return `${source.serial}:${from.start}-${from.end} ${output.dtype}:${to.start}`;
    })
    .join();
}
