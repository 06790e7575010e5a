import type { Operand } from '../graph/graph.ts';
import { extentOf } from '../../tensor/storage/extent.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import { type JointTime, nextWriteTime } from '../../tensor/storage/write-time.ts';
import type { Region } from '../../tensor/storage/write-versions.ts';
import type { CudaEvent } from '../../cuda/driver/event.ts';
import type { CudaStream } from '../../cuda/driver/stream.ts';

/** A parameter, in this storage, and where its elements lie in a copy. */
export interface CopiedParameter {
  readonly source: Storage;
  readonly parameter: Operand;
  readonly output: Operand;
}

/** When copies were cast: other streams must wait for it. */
export interface CastTime {
  readonly stream: CudaStream;
  readonly event: CudaEvent;
}

/** What a copy holds of a storage. */
interface Part {
  readonly source: Storage;
  readonly region: Region;
}

/** Copies by the storages of their first parameters: programs over the same parameters share them. */
const copiesOf = new WeakMap<Storage, Map<string, LowPrecisionCopy>>();

/** The elements of a parameter, or of several side by side, in a lower dtype, kept as long as a program holds them. */
export class LowPrecisionCopy {
  /** Of the copy; counts who holds it. */
  readonly memory: Storage;
  readonly #parts: readonly Part[];
  #lastCast: CastTime | null = null;
  /** When it held what its parameters held, to the knowledge of programs that are gone, and of those that are not. */
  #freshAt = 0;
  readonly #freshBehind = new Set<JointTime>();

  private constructor(parameters: readonly CopiedParameter[], memory: Storage) {
    this.#parts = parameters.map(({ source, parameter }) => ({ source, region: extentOf(parameter) }));
    this.memory = memory;
  }

  /**
   * The copy of these parameters, at least one, that lies so, in memory that `allocate` gives where there is none yet; one
   * reference to it, the caller's to release.
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

  /** Whether there is one already. */
  static isKnown(parameters: readonly CopiedParameter[]): boolean {
    return knownCopy(parameters) !== null;
  }

  /** Whether it is to be cast, for the first time or because a parameter has been written without it. */
  get isStale(): boolean {
    let freshAt = this.#freshAt;
    for (const { time } of this.#freshBehind) freshAt = Math.max(freshAt, time);
    if (freshAt === 0) return true;
    return this.#parts.some(({ source, region }) => source.writtenSince(freshAt, region));
  }

  /** Null before the first. */
  get lastCast(): CastTime | null {
    return this.#lastCast;
  }

  noteCast(time: CastTime): void {
    this.#lastCast = time;
    this.#freshAt = nextWriteTime();
  }

  /** It holds what its parameters hold whenever `run` is noted: behind the runs of a program that writes both or neither. */
  freshBehind(run: JointTime): void {
    this.#freshBehind.add(run);
  }

  /** That program is gone. */
  noMoreRuns(run: JointTime): void {
    this.#freshAt = Math.max(this.#freshAt, run.time);
    this.#freshBehind.delete(run);
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
