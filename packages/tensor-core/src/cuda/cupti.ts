import { DeviceError } from '../errors.ts';
import { type NativeFunctions, declareFunctions, ffi } from '../native/ffi.ts';
import { HostMemory } from '../native/host-memory.ts';
import {
  type ActivityRecord,
  type ExternalCorrelation,
  type GpuActivity,
  activityKinds,
  readActivityRecord,
} from './cupti-records.ts';
import { libraries, loadLibrary } from './library-search.ts';

const prototypes = {
  cuptiGetTimestamp: 'int cuptiGetTimestamp(uintptr_t timestamp)',
  cuptiActivityEnable: 'int cuptiActivityEnable(int kind)',
  cuptiActivityDisable: 'int cuptiActivityDisable(int kind)',
  cuptiActivityGetNextRecord:
    'int cuptiActivityGetNextRecord(uintptr_t buffer, size_t validBytes, uintptr_t record)',
  cuptiActivityGetNumDroppedRecords:
    'int cuptiActivityGetNumDroppedRecords(uintptr_t context, uint stream, uintptr_t dropped)',
  cuptiActivityPushExternalCorrelationId: 'int cuptiActivityPushExternalCorrelationId(int kind, uint64 id)',
  cuptiActivityPopExternalCorrelationId:
    'int cuptiActivityPopExternalCorrelationId(int kind, uintptr_t lastId)',
} as const;

// CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
const externalKind = 3;
const noMoreRecords = 12;

// What is recorded. External ids are only told of API calls that are recorded themselves: ours of the driver, and
// those of cublasLt, which are the runtime's.
const enabledKinds = [
  activityKinds.externalCorrelation,
  activityKinds.driver,
  activityKinds.runtime,
  activityKinds.concurrentKernel,
  activityKinds.memcpy,
  activityKinds.memset,
];

// A kernel with its call takes some 350 bytes: what `maxMarks` ops launch fits one buffer.
const bufferBytes = 32 * 2 ** 20;

/**
 * The most marks in one recording. CUPTI's thread hands full buffers over and asks for new ones on the event loop,
 * which waits for the code that is recorded; once CUPTI's own queues are full, that code would wait for CUPTI. On an
 * H200 with CUPTI 13, 20,000 kernels went well; an op launches up to three.
 */
export const maxMarks = 6000;

/** A buffer that CUPTI has filled. */
interface FilledBuffer {
  readonly memory: HostMemory;
  readonly validBytes: number;
}

/** What CUPTI recorded between `start` and `stop`. */
export interface RecordedActivities {
  /** In the order of their start. */
  readonly activities: readonly GpuActivity[];
  /** For the correlation id of an API call the external id that it was made under. */
  readonly externalIds: ReadonlyMap<number, number>;
  /** Records that found no room. */
  readonly droppedRecords: number;
}

/**
 * NVIDIA's activity records, as Nsight Systems takes them. CUPTI hands buffers over from a thread of its own;
 * koffi carries those calls to the event loop, so a flush must run beside it: `stop` is asynchronous.
 */
export class Cupti {
  readonly #functions: NativeFunctions<typeof prototypes>;
  readonly #flush: () => Promise<number>;
  readonly #describe: (result: number) => string;
  readonly #result = new HostMemory(64);
  readonly #buffers = new Map<number, HostMemory>();
  readonly #free: HostMemory[] = [];
  #filled: FilledBuffer[] = [];
  #pushed = 0;
  #baseNs = 0n;

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
    this.#registerCallbacks(handle.func('int cuptiActivityRegisterCallbacks(void *request, void *complete)'));
  }

  /** Begins to record, on all GPUs of this process. Throws a DeviceError if another profiler is attached. */
  start(): void {
    for (const kind of enabledKinds)
      this.#check(this.#functions.cuptiActivityEnable(kind), 'cuptiActivityEnable');
    this.#check(this.#functions.cuptiGetTimestamp(this.#result.address), 'cuptiGetTimestamp');
    this.#baseNs = new DataView(this.#result.bytes.buffer, this.#result.bytes.byteOffset).getBigUint64(
      0,
      true,
    );
  }

  /**
   * Marks the API calls of this thread from now on, until the next mark. Ids are pushed and not popped: one call
   * to an op instead of two. Throws a DeviceError after `maxMarks` of them.
   */
  mark(externalId: number): void {
    if (this.#pushed === maxMarks) {
      throw new DeviceError(
        `profile: more than ${maxMarks} ops on a GPU in one profile; profile fewer steps at a time.`,
      );
    }
    const { cuptiActivityPushExternalCorrelationId } = this.#functions;
    const result = cuptiActivityPushExternalCorrelationId(externalKind, externalId);
    if (result !== 0) this.#check(result, 'cuptiActivityPushExternalCorrelationId');
    this.#pushed++;
  }

  /** Ends recording and gives what was recorded. The GPUs must be idle. */
  async stop(): Promise<RecordedActivities> {
    for (; this.#pushed > 0; this.#pushed--)
      this.#functions.cuptiActivityPopExternalCorrelationId(externalKind, this.#result.address);
    this.#check(await this.#flush(), 'cuptiActivityFlushAll');
    for (const kind of enabledKinds)
      this.#check(this.#functions.cuptiActivityDisable(kind), 'cuptiActivityDisable');
    const filled = this.#filled;
    this.#filled = [];
    const records = filled.flatMap((buffer) => this.#read(buffer));
    this.#free.push(...filled.map(({ memory }) => memory));
    return { ...sortRecords(records), droppedRecords: this.#countDropped() };
  }

  #registerCallbacks(register: (request: unknown, complete: unknown) => number): void {
    const koffi = ffi();
    const request = koffi.proto(
      'void RooflineBufferRequested(uintptr_t buffer, uintptr_t byteLength, uintptr_t maxRecords)',
    );
    const complete = koffi.proto(
      'void RooflineBufferCompleted(uintptr_t context, uint stream, uintptr_t buffer, size_t byteLength, size_t validBytes)',
    );
    const requested = koffi.register((buffer: number, byteLength: number, maxRecords: number) => {
      const memory = this.#free.pop() ?? this.#makeBuffer();
      koffi.encode(buffer, 'uint64', memory.address);
      koffi.encode(byteLength, 'uint64', memory.bytes.length);
      koffi.encode(maxRecords, 'uint64', 0);
    }, koffi.pointer(request));
    const completed = koffi.register(
      (_context: number, _stream: number, buffer: number, _byteLength: number, validBytes: number) => {
        const memory = this.#buffers.get(Number(buffer))!;
        this.#filled.push({ memory, validBytes: Number(validBytes) });
      },
      koffi.pointer(complete),
    );
    this.#check(register(requested, completed), 'cuptiActivityRegisterCallbacks');
  }

  #makeBuffer(): HostMemory {
    const memory = new HostMemory(bufferBytes);
    this.#buffers.set(memory.address, memory);
    return memory;
  }

  #read({ memory, validBytes }: FilledBuffer): ActivityRecord[] {
    if (validBytes === 0) return [];
    const bytes = new DataView(memory.bytes.buffer, memory.bytes.byteOffset, validBytes);
    const context = { baseNs: this.#baseNs, textAt: rememberedText() };
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

/** Splits records into what ran and which mark it ran under. */
export function sortRecords(
  records: readonly ActivityRecord[],
): Pick<RecordedActivities, 'activities' | 'externalIds'> {
  const isCorrelation = (record: ActivityRecord): record is ExternalCorrelation =>
    record.kind === 'external-correlation';
  const activities = records.filter((record) => !isCorrelation(record)) as GpuActivity[];
  return {
    activities: activities.sort((a, b) => a.startNs - b.startNs),
    externalIds: new Map(
      records.filter(isCorrelation).map(({ correlationId, externalId }) => [correlationId, externalId]),
    ),
  };
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
