import { DeviceError, formatPlace } from '@roofline/cuda/host';
import { extentOf } from '../tensor/storage/extent.ts';
import { type Storage, isAnyHeld } from '../tensor/storage/storage.ts';
import { watchedChanges } from '../tensor/storage/watched-changes.ts';
import { JointTime } from '../tensor/storage/write-time.ts';
import type { Region } from '../tensor/storage/write-versions.ts';
import type { Binding } from './executable/executable.ts';
import type { Call, Graph } from './graph/graph.ts';

/** A region that calls write: of `storage`, or, if that is null, of the one bound to `number`. */
interface ExternalWrite {
  readonly number: number;
  readonly region: Region;
  readonly storage: Storage | null;
  /** One of those that write it. */
  readonly call: Call;
}

/** What a graph writes of storages that are not its own. */
export class ExternalWrites {
  readonly #writes: readonly ExternalWrite[];
  /** Writes to storages whose bindings differ from run to run. */
  readonly #bound: readonly ExternalWrite[];
  /** The time of all other writes, which always happen together. */
  readonly #joint = new JointTime();

  constructor(graph: Graph) {
    this.#writes = writesOf(graph);
    this.#bound = this.#writes.filter(({ storage }) => storage === null);
    for (const { storage, region } of this.#writes) storage?.joinWrite(this.#joint, region);
  }

  /** Throws a DeviceError where something under way, such as a collective, works on memory that the graph writes. */
  checkHolds(bindings: ReadonlyMap<number, Binding>): void {
    if (!isAnyHeld()) return;
    for (const write of this.#writes) {
      const { region, call } = write;
      const [hold] = targetOf(write, bindings).holdsOn(region);
      if (!hold) continue;
      throw new DeviceError(
        `compile: the function writes ${region.end - region.start} bytes that ${hold.holder} works on; wait for it first.` +
          describeWriter(call),
      );
    }
  }

  /** Records that everything has been written. */
  note(bindings: ReadonlyMap<number, Binding>): void {
    for (const write of this.#bound) targetOf(write, bindings).noteWrite(write.region);
    if (this.#bound.length === this.#writes.length) return;
    this.#joint.note();
    watchedChanges.writes++;
  }

  dispose(): void {
    for (const { storage } of this.#writes) storage?.leaveWrite(this.#joint);
  }
}

/** The regions of given storages that calls write, each once. */
function writesOf({ calls, written, storages }: Graph): ExternalWrite[] {
  const outputs = calls.flatMap((call) => call.outputs.map((output) => ({ call, output })));
  const writes = outputs
    .filter(({ output }) => written.has(output.storage))
    .map(({ call, output }) => {
      const { source } = storages[output.storage]!;
      const storage = 'storage' in source ? source.storage : null;
      return { number: output.storage, region: extentOf(output), storage, call };
    });
  const byPlace = new Map(
    writes.map((write) => [`${write.number}:${write.region.start}-${write.region.end}`, write]),
  );
  return [...byPlace.values()];
}

function describeWriter({ op, place }: Call): string {
  return place ? ` The op ${op.name} at ${formatPlace(place)} does so.` : ` The op ${op.name} does so.`;
}

function targetOf({ number }: ExternalWrite, bindings: ReadonlyMap<number, Binding>): Storage {
  return bindings.get(number)!.storage as Storage;
}
