import { DeviceError } from '../base/errors.ts';
import { type NativeFunctions, declareFunctions, ffi } from '../base/host/ffi.ts';
import { HostMemory } from '../base/host/host-memory.ts';
import {
  type ActivityRecord,
  type ApiCall,
  type GpuActivity,
  activityKinds,
  readActivityRecord,
} from './cupti-records.ts';
import { CuptiBuffers } from './cupti-buffers.ts';
import { libraries, loadLibrary } from '../driver/library-search.ts';

const prototypes = {
  cuptiGetTimestamp: 'int cuptiGetTimestamp(uintptr_t timestamp)',
  cuptiActivityEnable: 'int cuptiActivityEnable(int kind)',
  cuptiActivityDisable: 'int cuptiActivityDisable(int kind)',
  cuptiActivitySetAttribute:
    'int cuptiActivitySetAttribute(int attribute, uintptr_t byteLength, uintptr_t value)',
  cuptiActivityEnableDriverApi: 'int cuptiActivityEnableDriverApi(uint call, uint8_t enable)',
  cuptiActivityEnableRuntimeApi: 'int cuptiActivityEnableRuntimeApi(uint call, uint8_t enable)',
  cuptiActivityGetNextRecord:
    'int cuptiActivityGetNextRecord(uintptr_t buffer, size_t validBytes, uintptr_t record)',
  cuptiActivityGetNumDroppedRecords:
    'int cuptiActivityGetNumDroppedRecords(uintptr_t context, uint stream, uintptr_t dropped)',
} as const;

const noMoreRecords = 12;

// CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
const zeroedBuffers = 5;

const enabledKinds = [
  activityKinds.driver,
  activityKinds.runtime,
  activityKinds.concurrentKernel,
  activityKinds.memcpy,
  activityKinds.peerMemcpy,
  activityKinds.memset,
];

// Calls that queue nothing and that cublasLt makes for every product, from cupti_driver_cbid.h and
// cupti_runtime_cbid.h: their records would only cost the host time.
const cuKernelGetAttribute = 686;
const cudaGetDevice = 17;

// Reading two clocks takes about a microsecond; the closest pair of so many counts.
const clockReadings = 8;

/** What CUPTI recorded between `start` and `stop`. */
export interface RecordedActivities {
  /** In the order of their start. */
  readonly activities: readonly GpuActivity[];
  /** For the correlation id of a call that queued work the middle of that call, by `performance.now()`. */
  readonly queuedAtMs: ReadonlyMap<number, number>;
  /** Records that found no room. */
  readonly droppedRecords: number;
}

/** NVIDIA's activity records, as Nsight Systems takes them. */
export class Cupti {
  readonly #functions: NativeFunctions<typeof prototypes>;
  readonly #flush: () => Promise<number>;
  readonly #describe: (result: number) => string;
  readonly #result = new HostMemory(64);
  readonly #buffers: CuptiBuffers;
  #startedAt: ClockReading = { ns: 0n, ms: 0 };

  /** Throws a LibraryNotFoundError without CUPTI. */
  constructor() {
    const { handle, path } = loadLibrary(libraries.cupti);
    this.#functions = declareFunctions(
      handle,
      prototypes,
      (name) => new DeviceError(`${path} has no ${name}: take a newer CUPTI.`),
    );
    const flush = handle.func('int cuptiActivityFlushAll(uint flags)');
    this.#flush = () =>
      new Promise((resolve, reject) =>
        flush.async(1, (error: Error | null, result: number) => (error ? reject(error) : resolve(result))),
      );
    const getResultString = handle.func('int cuptiGetResultString(int result, _Out_ const char **text)');
    this.#describe = (result) => {
      const text: [string | null] = [null];
      getResultString(result, text);
      return text[0] ?? `CUptiResult ${result}`;
    };
    this.#buffers = new CuptiBuffers(this.#describe);
  }

  /** Begins to record, on all GPUs of this process. Throws a DeviceError if another profiler is attached. */
  start(): void {
    this.#takeZeroedBuffers();
    try {
      this.#enable();
      this.#startedAt = this.#readClocks();
    } catch (error) {
      for (const kind of enabledKinds) this.#functions.cuptiActivityDisable(kind);
      throw error;
    }
  }

  /** Ends recording and gives what was recorded. The GPUs must be idle. */
  async stop(): Promise<RecordedActivities> {
    const endedAt = this.#readClocks();
    const flushed = await this.#flush();
    const disabled = enabledKinds.map((kind) => this.#functions.cuptiActivityDisable(kind));
    this.#check(flushed, 'cuptiActivityFlushAll');
    for (const result of disabled) this.#check(result, 'cuptiActivityDisable');
    const filled = await this.#buffers.collect();
    const records = filled.flatMap((bytes) => this.#read(bytes));
    const { activities: all, calls } = sortRecords(records);
    // Records that a recording before could not collect come late.
    const activities = all.filter(({ startNs }) => startNs >= 0);
    const toHostMs = hostClock(this.#startedAt, endedAt);
    const middles = calls.map(
      ({ correlationId, startNs, endNs }) => [correlationId, toHostMs((startNs + endNs) / 2)] as const,
    );
    return { activities, queuedAtMs: new Map(middles), droppedRecords: this.#countDropped() };
  }

  #enable(): void {
    const { cuptiActivityEnable, cuptiActivityEnableDriverApi, cuptiActivityEnableRuntimeApi } =
      this.#functions;
    for (const kind of enabledKinds) this.#check(cuptiActivityEnable(kind), 'cuptiActivityEnable');
    this.#check(cuptiActivityEnableDriverApi(cuKernelGetAttribute, 0), 'cuptiActivityEnableDriverApi');
    this.#check(cuptiActivityEnableRuntimeApi(cudaGetDevice, 0), 'cuptiActivityEnableRuntimeApi');
  }

  /** Else CUPTI zeroes each buffer that it gets, on the thread whose work is timed. */
  #takeZeroedBuffers(): void {
    this.#result.writeInt64(0, 1);
    this.#result.bytes[8] = 1;
    const { address } = this.#result;
    const result = this.#functions.cuptiActivitySetAttribute(zeroedBuffers, address, address + 8);
    this.#check(result, 'cuptiActivitySetAttribute');
  }

  #readClocks(): ClockReading {
    let closestMs = Infinity;
    let reading = { ns: 0n, ms: 0 };
    const { bytes, address } = this.#result;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    for (let i = 0; i < clockReadings; i++) {
      const before = performance.now();
      const result = this.#functions.cuptiGetTimestamp(address);
      const after = performance.now();
      this.#check(result, 'cuptiGetTimestamp');
      if (after - before >= closestMs) continue;
      closestMs = after - before;
      reading = { ns: view.getBigUint64(0, true), ms: (before + after) / 2 };
    }
    return reading;
  }

  #read(filled: Uint8Array): ActivityRecord[] {
    const validBytes = filled.length;
    if (validBytes === 0) return [];
    const memory = new HostMemory(validBytes);
    memory.bytes.set(filled);
    const bytes = new DataView(memory.bytes.buffer, memory.bytes.byteOffset, validBytes);
    const context = { baseNs: this.#startedAt.ns, textAt: rememberedText() };
    const { cuptiActivityGetNextRecord } = this.#functions;
    const records: ActivityRecord[] = [];
    this.#result.writeInt64(0, 0);
    for (;;) {
      const result = cuptiActivityGetNextRecord(memory.address, validBytes, this.#result.address);
      if (result === noMoreRecords) return records;
      this.#check(result, 'cuptiActivityGetNextRecord');
      const record = readActivityRecord(bytes, this.#result.readUint64(0) - memory.address, context);
      if (record) records.push(record);
    }
  }

  #countDropped(): number {
    const { address } = this.#result;
    this.#check(
      this.#functions.cuptiActivityGetNumDroppedRecords(0, 0, address),
      'cuptiActivityGetNumDroppedRecords',
    );
    return this.#result.readUint64(0);
  }

  #check(result: number, call: string): void {
    if (result === 0) return;
    throw new DeviceError(
      `${call} failed: ${this.#describe(result)}. Only one profiler can be attached at a time: run without Nsight or ` +
        'another user of CUPTI, and where the driver keeps profiling to administrators, ask for it to be allowed.',
    );
  }
}

/** CUPTI's clock and the host's at one moment. */
interface ClockReading {
  readonly ns: bigint;
  /** By `performance.now()`. */
  readonly ms: number;
}

/**
 * From nanoseconds of CUPTI's clock since `start` to the host's. The clocks may run at slightly different speeds: one
 * follows the time of day.
 */
export function hostClock(start: ClockReading, end: ClockReading): (ns: number) => number {
  const msPerNs = (end.ms - start.ms) / Number(end.ns - start.ns);
  return (ns) => start.ms + ns * msPerNs;
}

/** Splits records into what ran, in the order of its start, and the calls that queued it. */
export function sortRecords(records: readonly ActivityRecord[]): {
  activities: GpuActivity[];
  calls: ApiCall[];
} {
  const isCall = (record: ActivityRecord): record is ApiCall => record.kind === 'api-call';
  const activities = records.filter((record): record is GpuActivity => !isCall(record));
  return { activities: activities.sort((a, b) => a.startNs - b.startNs), calls: records.filter(isCall) };
}

/** Reads each C string once: kernels repeat. */
function rememberedText(): (address: number) => string {
  const texts = new Map<number, string>();
  return (address) => {
    let text = texts.get(address);
    if (text === undefined) texts.set(address, (text = ffi().decode(address, 'char', -1) as string));
    return text;
  };
}

let cupti: Cupti | null = null;

/** CUPTI, loaded at first use. Throws a LibraryNotFoundError. */
export function loadCupti(): Cupti {
  cupti ??= new Cupti();
  return cupti;
}
