import type { Binding } from '../executable/executable.ts';
import type { Program } from '../graph/graph.ts';
import type { ProgramMemory } from '../executable/run-memory.ts';
import { watchedChanges } from '../../tensor/storage/watched-changes.ts';

/** Where a storage lay. */
interface Place {
  readonly number: number;
  readonly address: number;
}

/** Where given storages lay when a graph was captured that works on them there. */
export class ExternalPlaces {
  /** Of captured storages, whose moves are counted. */
  readonly #watched: readonly Place[];
  readonly #others: readonly Place[];
  /** The count of `watchedChanges` at which the watched ones lay where they lay. */
  #sameAt = -1;

  /** Of the storages of `program` with these numbers, as they lie in `memory`. */
  constructor(program: Program, numbers: readonly number[], memory: ProgramMemory) {
    const isWatched = ({ number }: Place) => program.storages[number]!.source.kind === 'captured';
    const places = numbers.map((number) => ({ number, address: memory.addressOf(number) }));
    this.#watched = places.filter(isWatched);
    this.#others = places.filter((place) => !isWatched(place));
  }

  areThoseOf(bindings: ReadonlyMap<number, Binding>): boolean {
    const liesThere = ({ number, address }: Place) => {
      const { storage, byteOffset } = bindings.get(number)!;
      return storage.buffer.address + byteOffset === address;
    };
    if (!this.#others.every(liesThere)) return false;
    const { handles } = watchedChanges;
    if (this.#sameAt === handles) return true;
    const areSame = this.#watched.every(liesThere);
    if (areSame) this.#sameAt = handles;
    return areSame;
  }
}
