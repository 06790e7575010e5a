import { observeReplay } from '../../op/observers.ts';
import { bytesOf } from '../../op/cost.ts';
import type { Binding } from '../executable/executable.ts';
import type { Call, Program, StorageSource } from '../graph/graph.ts';
import { replayOf } from '../executable/replay.ts';
import type { ProgramReplay } from '../../op/replay.ts';
import { watchedChanges } from '../../tensor/storage/watched-changes.ts';
import { JointTime } from '../../tensor/storage/write-time.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import type { CudaDriver } from '../../cuda/driver/driver.ts';
import type { CudaStream } from '../../cuda/driver/stream.ts';
import { blockBytes } from '../../cuda/memory/allocator.ts';
import { CudaGraph } from '../../cuda/graph.ts';
import { type CastTime, type CopiedParameter, LowPrecisionCopy } from './low-precision-copy.ts';

type CopySource = Extract<StorageSource, { kind: 'copy' }>;

/** The copies of parameters that a program finds at each run, as `carryLowPrecisionCopies` left them to it. */
export class CarriedCopies {
  readonly #program: Program;
  readonly #driver: CudaDriver;
  /** By the numbers of the copies' storages. */
  readonly #sources: ReadonlyMap<number, CopySource>;
  /** The casts that make the copies. */
  readonly #casts: readonly Call[];
  /** All casts that no run makes: these, and those that would make parts of the copies again. */
  readonly #leftOut: readonly Call[];
  readonly #copies = new Map<number, LowPrecisionCopy>();
  /** Casts all of them. */
  #graph: CudaGraph | null = null;
  /** The end of the program's last run. */
  readonly #run = new JointTime();
  /** Where and at which count of `watchedChanges` all copies were fresh. */
  #freshOn: CudaStream | null = null;
  #freshAt = -1;

  constructor(program: Program, driver: CudaDriver) {
    this.#program = program;
    this.#driver = driver;
    this.#sources = new Map(
      program.storages.flatMap(({ source }, number) =>
        source.kind === 'copy' ? [[number, source] as const] : [],
      ),
    );
    const sources = [...this.#sources.values()];
    this.#casts = sources.flatMap(({ casts }) => casts);
    this.#leftOut = sources.flatMap(({ casts, repeated }) => [...casts, ...repeated]);
  }

  /** Bytes of the copies. */
  get byteLength(): number {
    return [...this.#copies.values()].reduce((sum, { memory }) => sum + memory.byteLength, 0);
  }

  /** Bytes that the casts which are left out would write in every run. */
  get castBytes(): number {
    return bytesOf(this.#leftOut.flatMap(({ outputs }) => outputs));
  }

  facts(): { carriedCasts: number; carriedBytes: number } {
    const moved = this.#leftOut.flatMap(({ inputs, outputs }) => [...inputs, ...outputs]);
    const written = this.#program.calls.flatMap(({ outputs }) =>
      outputs.filter(({ storage }) => this.#sources.has(storage)),
    );
    return { carriedCasts: this.#leftOut.length, carriedBytes: bytesOf(moved) - bytesOf(written) };
  }

  /** Where the copies lie, for as long as the program lives; makes their memory the first time. */
  bindings(): Map<number, Binding> {
    if (this.#copies.size < this.#sources.size) this.#makeCopies();
    const bindingOf = ({ memory }: LowPrecisionCopy) => ({ storage: memory, byteOffset: 0 });
    return new Map([...this.#copies].map(([number, copy]) => [number, bindingOf(copy)]));
  }

  /** Captures what casts the copies; `queue` queues a call on the stream. */
  capture(stream: CudaStream, queue: (call: Call) => void): void {
    this.#graph?.dispose();
    this.#graph = null;
    if (this.#sources.size === 0) return;
    this.#graph = CudaGraph.capture(this.#driver, stream, () => {
      for (const cast of this.#casts) queue(cast);
    });
  }

  /** Casts the copies if one of them is not what its parameters are; work queued on `stream` behind this finds them. */
  refresh(stream: CudaStream): void {
    if (this.#freshOn === stream && this.#freshAt === watchedChanges.writes) return;
    let isOneStale = false;
    // What was cast at one time is waited for once.
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

  /** Behind a run, once its writes count as writes of the parameters: it wrote none without its copy. */
  noteWritten(): void {
    this.#run.note();
    this.#freshAt = watchedChanges.writes;
  }

  dispose(): void {
    this.#graph?.dispose();
    this.#graph = null;
    for (const copy of this.#copies.values()) {
      copy.noMoreRuns(this.#run);
      copy.memory.release();
    }
    this.#copies.clear();
  }

  /**
   * Those that no other program has made lie in one segment, which takes no more than they need. It is all that takes
   * memory: either all copies are there behind this, or none.
   */
  #makeCopies(): void {
    const device = this.#program.device as CudaDevice;
    const wanted = [...this.#sources].map(([number, { casts }]) => ({
      number,
      byteLength: this.#program.storages[number]!.byteLength,
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
          copy.freshBehind(this.#run);
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
      () => this.#graph!.launch(stream),
    );
    const time = { stream, event: stream.recordEvent({ timing: false }) };
    for (const copy of this.#copies.values()) copy.noteCast(time);
  }

  /** What its graph launches: a kernel for each cast. */
  #replay(): ProgramReplay {
    return replayOf(
      { ...this.#program, calls: this.#casts },
      [],
      this.#casts.map(() => 1),
    );
  }

  #copiedBy({ inputs: [parameter], outputs: [output] }: Call): CopiedParameter {
    const { source } = this.#program.storages[parameter!.storage]!;
    if (source.kind !== 'captured') throw new TypeError('A copy is of captured storages.');
    return { source: source.storage, parameter: parameter!, output: output! };
  }
}

/** Where so many bytes of the current pool are free. */
function reservedAddress(device: CudaDevice, bytes: number): number {
  const block = device.allocate(bytes);
  device.free(block);
  return block.address;
}
