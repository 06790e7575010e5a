import type { Binding } from '../executable/executable.ts';
import type { Graph } from '../graph/graph.ts';
import type { RunMemory } from '../executable/run-memory.ts';
import { watchedChanges } from '../../tensor/storage/watched-changes.ts';

/** The address of a storage. */
interface Place {
  readonly number: number;
  readonly address: number;
}

/** The addresses of given storages when a CUDA graph that works on them was captured. */
export class ExternalPlaces {
  /** Captured storages: `watchedChanges` counts their moves. */
  readonly #watched: readonly Place[];
  readonly #others: readonly Place[];
  /** The count of `watchedChanges` at which the watched ones were last found unmoved. */
  #sameAt = -1;

  /** Of the storages of `graph` with these numbers, as they lie in `memory`. */
  constructor(graph: Graph, numbers: readonly number[], memory: RunMemory) {
    const isWatched = ({ number }: Place) => graph.storages[number]!.source.kind === 'captured';
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
