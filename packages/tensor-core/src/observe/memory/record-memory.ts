import {
  type AllocationKind,
  DeviceError,
  type MemoryObserver,
  type MemorySegment,
  checkCount,
  checkOptions,
  refuseAsync,
  refusePromise,
} from '@roofline/cuda/host';
import { type Observer, observeOps } from '../../op/observers.ts';
import type { Device } from '../../tensor/device.ts';
import { type DeviceSpec, deviceOf } from '../../backends/device-registry.ts';
import type { ComputeOp } from '../../op/op.ts';
import { type RangeListener, currentRange, onRange } from '../../tensor/ranges/range.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { type StackFrame, captureStack, forgetStacks, joinedFrames } from './call-stack.ts';
import { type Allocation, type MemoryEvent, type MemoryRecord, isPhase, phaseOf } from './record.ts';

/** Options of `recordMemory`. */
export interface RecordMemoryOptions {
  /** The device whose memory is recorded. Default cpu. */
  readonly device?: DeviceSpec | Device;
  /**
   * How many innermost calls of each allocation are kept, including some ten of this package; 0 for none. Each costs about a
   * third of a microsecond. Default 20.
   */
  readonly stackDepth?: number;
}

/**
 * Runs `fn` and records every allocation and free of `device`'s memory: storages and workspaces with their sizes, times,
 * calls, ranges and ops; and what the allocator takes from the system. The calls of an allocation are its innermost ones, then
 * those that opened its phase or, outside of phases, started the recording. Allocations in the phase `backward` have only the
 * latter: there one loop calls everything, and op and range say more.
 *
 * On a GPU a compiled function is recorded as it runs: what its ops pass to each other lies in its arena, which is allocated
 * as a whole before its first replay and named `arena of step` for a function `step`. On the CPU its ops run one by one while
 * recording, because ONNX Runtime does not report the memory that it takes inside a graph.
 *
 * While nothing records, this costs one null check for each allocation. Throws a DeviceError if a recording of the device is
 * under way, a RooflineError for an async function, and whatever `fn` throws.
 */
export function recordMemory<T>(fn: () => T, options: RecordMemoryOptions = {}): MemoryRecord<T> {
  refuseAsync('recordMemory', fn);
  checkOptions('recordMemory', options, ['device', 'stackDepth']);
  const { device: spec = 'cpu', stackDepth = 20 } = options;
  checkCount('recordMemory', 'stackDepth', stackDepth);
  const device = deviceOf('recordMemory', spec);
  const segmentsBefore = device.memorySegments();
  const recorder = new Recorder(segmentsBefore, stackDepth);
  const outer = device.observeMemory(recorder);
  if (outer !== null) {
    device.observeMemory(outer);
    throw new DeviceError(`recordMemory: the memory of ${device.label} is being recorded already.`);
  }
  const startedAtMs = Date.now();
  const stopObserving = observeOps(recorder);
  const stopListening = onRange(recorder);
  try {
    const result = refusePromise('recordMemory', fn());
    const durationUs = recorder.elapsedUs();
    device.observeMemory(null);
    return {
      result,
      device: device.label,
      startedAtMs,
      durationUs,
      ...recorder.read(),
      reservedBytesBefore: segmentsBefore.reduce((sum, { bytes }) => sum + bytes, 0),
      segments: device.memorySegments(),
    };
  } finally {
    device.observeMemory(null);
    stopObserving();
    stopListening();
    forgetStacks();
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type OpenAllocation = Writable<Allocation>;

/** Calls that led to `origin`. They are formatted at the end, because that costs more than everything else. */
interface CapturedCalls {
  readonly origin: { stack: readonly StackFrame[] };
  readonly inner: Error;
  readonly outer: Error;
}

/** Deeper than for allocations, as phases are few. */
const outerDepth = 40;

/** Hot: each line runs for each allocation of a step. */
class Recorder implements MemoryObserver, Observer, RangeListener {
  readonly #allocations: OpenAllocation[] = [];
  readonly #events: MemoryEvent[] = [];
  readonly #live = new Map<number, OpenAllocation>();
  readonly #startMs = performance.now();
  readonly #stackDepth: number;
  readonly #calls: CapturedCalls[] = [];
  /** The op that is running, for its workspaces, and the calls that led to it. */
  #op: string | null = null;
  #opCalls: Error | null = null;
  /** The calls that started the recording, and those that opened the current phase. */
  readonly #recordingCalls: Error | null;
  #phaseCalls: Error | null;
  #range: readonly string[] = [];
  #phase: string | null = null;

  constructor(segments: readonly MemorySegment[], stackDepth: number) {
    this.#stackDepth = stackDepth;
    this.#recordingCalls = stackDepth > 0 ? captureStack(outerDepth) : null;
    this.#phaseCalls = this.#recordingCalls;
    for (const { blocks } of segments) {
      for (const { address, requestedBytes, allocatedBytes, name } of blocks) {
        if (requestedBytes !== null) this.#add(heldBefore(address, requestedBytes, allocatedBytes, name));
      }
    }
  }

  elapsedUs(): number {
    return (performance.now() - this.#startMs) * 1000;
  }

  allocated(
    address: number,
    requestedBytes: number,
    bytes: number,
    kind: AllocationKind,
    name?: string,
  ): void {
    const timeUs = this.elapsedUs();
    const phase = this.#currentPhase();
    const allocation = heldBefore(address, requestedBytes, bytes, name);
    allocation.kind = kind;
    allocation.startUs = timeUs;
    allocation.range = this.#range;
    allocation.phase = phase;
    allocation.op ??= this.#op;
    this.#add(allocation);
    this.#events.push({ action: 'allocate', timeUs, phase, allocation });
    this.#keepCalls(allocation, phase);
  }

  freed(address: number): void {
    const timeUs = this.elapsedUs();
    const allocation = this.#live.get(address)!;
    this.#live.delete(address);
    allocation.endUs = timeUs;
    this.#events.push({ action: 'free', timeUs, phase: this.#currentPhase(), allocation });
  }

  segmentReserved(address: number, bytes: number): void {
    this.#segmentChanged('reserve', address, bytes);
  }

  segmentReleased(address: number, bytes: number): void {
    this.#segmentChanged('release', address, bytes);
  }

  enter(name: string): void {
    if (!isPhase(name) || this.#currentPhase() !== name) return;
    this.#events.push({ action: 'enter', timeUs: this.elapsedUs(), phase: name });
    if (this.#stackDepth > 0) this.#phaseCalls = captureStack(outerDepth);
  }

  exit(): void {}

  before(op: ComputeOp<never>, _: readonly Tensor[], outputs: readonly Tensor[]): void {
    this.#op = op.name;
    for (let i = 0; i < outputs.length; i++) {
      const output = outputs[i]!;
      // An output written to existing memory, such as a bucket of gradients, does not name that memory.
      const isMade = op.mutates?.[i] === undefined && output.storage.version === 0;
      if (isMade) this.#nameOutput(op.name, output);
    }
  }

  after(): void {
    this.#op = null;
    this.#opCalls = null;
  }

  /** Defined so that a compiled graph, which allocates nothing, runs as it does without a recording. */
  beforeReplay(): void {}

  /** The recording, stacks formatted. */
  read(): { allocations: readonly Allocation[]; events: readonly MemoryEvent[] } {
    for (const { origin, inner, outer } of this.#calls) origin.stack = joinedFrames(inner, outer);
    return { allocations: this.#allocations, events: this.#events };
  }

  #add(allocation: OpenAllocation): void {
    this.#allocations.push(allocation);
    this.#live.set(allocation.address, allocation);
  }

  /** Captures as rarely as possible: a capture costs several times as much as everything else here together. */
  #keepCalls(origin: CapturedCalls['origin'], phase: string | null): void {
    const outer = phase === null ? this.#recordingCalls : this.#phaseCalls;
    if (outer === null) return;
    let inner: Error | null = null;
    if (phase === 'backward') inner = outer;
    else if (this.#op === null) inner = captureStack(this.#stackDepth);
    else inner = this.#opCalls ??= captureStack(this.#stackDepth);
    this.#calls.push({ origin, inner, outer });
  }

  #segmentChanged(action: 'reserve' | 'release', address: number, bytes: number): void {
    const phase = this.#currentPhase();
    const event = { action, timeUs: this.elapsedUs(), phase, address, bytes, stack: noCalls };
    this.#events.push(event);
    this.#keepCalls(event, phase);
  }

  #currentPhase(): string | null {
    const range = currentRange();
    if (range !== this.#range) {
      this.#range = range;
      this.#phase = phaseOf(range);
    }
    return this.#phase;
  }

  #nameOutput(op: string, { storage, dtype, shape }: Tensor): void {
    const allocation = this.#live.get(storage.buffer.address);
    if (!allocation || allocation.startUs === null) return;
    const latest = this.#calls.at(-1);
    if (latest?.origin === allocation) this.#opCalls = latest.inner;
    allocation.op = op;
    allocation.dtype = dtype;
    allocation.shape = shape;
  }
}

function heldBefore(address: number, requestedBytes: number, bytes: number, name?: string): OpenAllocation {
  return {
    address,
    requestedBytes,
    bytes,
    kind: null,
    startUs: null,
    endUs: null,
    range: [],
    phase: null,
    op: name ?? null,
    dtype: null,
    shape: null,
    stack: noCalls,
  };
}

const noCalls: readonly StackFrame[] = [];
