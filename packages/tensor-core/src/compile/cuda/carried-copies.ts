import { oneChain } from './branches.ts';
import { observeReplay } from '../../op/observers.ts';
import { bytesOf } from '../../op/cost.ts';
import type { Binding } from '../executable/executable.ts';
import type { Call, Graph, StorageSource } from '../graph/graph.ts';
import { replayOf } from '../executable/replay.ts';
import type { Replay } from '../../op/replay.ts';
import { watchedChanges } from '../../tensor/storage/watched-changes.ts';
import { JointTime } from '../../tensor/storage/write-time.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import { type CudaDriver, CudaGraph, blockBytes } from '@roofline/cuda/parts';
import type { CudaStream } from '@roofline/cuda';
import { type CastTime, type CopiedParameter, LowPrecisionCopy } from './low-precision-copy.ts';

type CopySource = Extract<StorageSource, { kind: 'copy' }>;

/** The low-precision copies of parameters that a graph keeps from run to run; see `carryLowPrecisionCopies`. */
export class CarriedCopies {
  readonly #graph: Graph;
  readonly #driver: CudaDriver;
  /** By the number of the copy's storage. */
  readonly #sources: ReadonlyMap<number, CopySource>;
  /** The casts that make the copies. */
  readonly #casts: readonly Call[];
  /** All casts that no run makes: these, and those that would repeat parts of them. */
  readonly #leftOut: readonly Call[];
  readonly #copies = new Map<number, LowPrecisionCopy>();
  /** Makes all copies. */
  #castGraph: CudaGraph | null = null;
  /** The end of the last run. */
  readonly #run = new JointTime();
  /** The stream on which, and the count of `watchedChanges` at which, all copies were fresh. */
  #freshOn: CudaStream | null = null;
  #freshAt = -1;

  constructor(graph: Graph, driver: CudaDriver) {
    this.#graph = graph;
    this.#driver = driver;
    this.#sources = new Map(
      graph.storages.flatMap(({ source }, number) =>
        source.kind === 'copy' ? [[number, source] as const] : [],
      ),
    );
    const sources = [...this.#sources.values()];
    this.#casts = sources.flatMap(({ casts }) => casts);
    this.#leftOut = sources.flatMap(({ casts, repeated }) => [...casts, ...repeated]);
  }

  /** Bytes of the copies that have been made. */
  get byteLength(): number {
    return [...this.#copies.values()].reduce((sum, { memory }) => sum + memory.byteLength, 0);
  }

  /** Bytes that the casts left out would write in every run. */
  get castBytes(): number {
    return bytesOf(this.#leftOut.flatMap(({ outputs }) => outputs));
  }

  facts(): { carriedCasts: number; carriedBytes: number } {
    const moved = this.#leftOut.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]);
    const written = this.#graph.calls.flatMap(({ outputs }) =>
      outputs.filter(({ storage }) => this.#sources.has(storage)),
    );
    return { carriedCasts: this.#leftOut.length, carriedBytes: bytesOf(moved) - bytesOf(written) };
  }

  /** The copies' bindings, which never change; allocates their memory the first time. */
  bindings(): Map<number, Binding> {
    if (this.#copies.size < this.#sources.size) this.#makeCopies();
    const bindingOf = ({ memory }: LowPrecisionCopy) => ({ storage: memory, byteOffset: 0 });
    return new Map([...this.#copies].map(([number, copy]) => [number, bindingOf(copy)]));
  }

  /** Captures the casts that make the copies; `queue` queues a call on the stream. */
  capture(stream: CudaStream, queue: (call: Call) => void): void {
    this.#castGraph?.dispose();
    this.#castGraph = null;
    if (this.#sources.size === 0) return;
    this.#castGraph = CudaGraph.capture(this.#driver, stream, () => {
      for (const cast of this.#casts) queue(cast);
    });
  }

  /** Makes the copies again if one of them is stale; work queued on `stream` after this finds them fresh. */
  refresh(stream: CudaStream): void {
    if (this.#freshOn === stream && this.#freshAt === watchedChanges.writes) return;
    let isOneStale = false;
    // Copies made at the same time are waited for once.
    let waitedFor: CastTime | null = null;
    for (const { isStale, lastCast } of this.#copies.values()) {
      isOneStale ||= isStale;
      if (lastCast === null || lastCast === waitedFor || lastCast.stream === stream) continue;
      stream.waitFor(lastCast.event);
      waitedFor = lastCast;
    }
    if (isOneStale) this.#cast(stream);
    this.#freshOn = stream;
    this.#freshAt = watchedChanges.writes;
  }

  /** Called after a run, once its writes are recorded on the parameters: it wrote none without its copy. */
  noteWritten(): void {
    this.#run.note();
    this.#freshAt = watchedChanges.writes;
  }

  dispose(): void {
    this.#castGraph?.dispose();
    this.#castGraph = null;
    for (const copy of this.#copies.values()) {
      copy.noMoreRuns(this.#run);
      copy.memory.release();
    }
    this.#copies.clear();
  }

  /**
   * Allocates those that no other graph has already, in one segment of exactly their size. As that is the only allocation,
   * either all copies exist afterwards, or none.
   */
  #makeCopies(): void {
    const device = this.#graph.device as CudaDevice;
    const wanted = [...this.#sources].map(([number, { casts }]) => ({
      number,
      byteLength: this.#graph.storages[number]!.byteLength,
      parameters: casts.map((cast) => this.#copiedBy(cast)),
    }));
    const bytes = wanted
      .filter(({ parameters }) => !LowPrecisionCopy.isKnown(parameters))
      .reduce((sum, { byteLength }) => sum + blockBytes(byteLength), 0);
    const pool = device.createPool({ segmentSize: 'exact' });
    try {
      device.withPool(pool, () => {
        let next = bytes > 0 ? reservedAddress(device, bytes) : 0;
        for (const { number, byteLength, parameters } of wanted) {
          const copy = LowPrecisionCopy.of(parameters, () => {
            const block = device.allocateAt(next, byteLength);
            next += block.size;
            return new Storage(device, byteLength, block);
          });
          copy.freshAfter(this.#run);
          this.#copies.set(number, copy);
        }
      });
    } finally {
      pool.release();
    }
  }

  #cast(stream: CudaStream): void {
    observeReplay(
      () => this.#replay(),
      () => this.#castGraph!.launch(stream),
    );
    const time = { stream, event: stream.recordEvent({ timing: false }) };
    for (const copy of this.#copies.values()) copy.noteCast(time);
  }

  /** What the CUDA graph of casts launches: a kernel for each. */
  #replay(): Replay {
    return replayOf(
      { ...this.#graph, calls: this.#casts },
      [],
      this.#casts.map(() => 1),
      oneChain,
    );
  }

  #copiedBy({ inputs: [parameter], outputs: [output] }: Call): CopiedParameter {
    const { source } = this.#graph.storages[parameter!.storage]!;
    if (source.kind !== 'captured') throw new TypeError('A copy is of captured storages.');
    return { source: source.storage, parameter: parameter!, output: output! };
  }
}

/** An address at which the current pool has `bytes` free. */
function reservedAddress(device: CudaDevice, bytes: number): number {
  const block = device.allocate(bytes);
  device.free(block);
  return block.address;
}
