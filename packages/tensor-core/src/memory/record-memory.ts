import { type OpObserver, observeOps } from '../apply.ts';
import type { Device } from '../device.ts';
import { type DeviceSpec, device as deviceOf } from '../device-registry.ts';
import type { DType } from '../dtype.ts';
import { DeviceError } from '../errors.ts';
import type { ComputeOp } from '../op.ts';
import { type RangeListener, currentRange, onRange } from '../range.ts';
import type { Shape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { type StackFrame, captureStack, forgetStacks, framesOf } from './call-stack.ts';
import type { AllocationKind, MemoryObserver, MemorySegment } from './observer.ts';
import { type Allocation, type MemoryEvent, type MemoryRecord, phaseOf } from './record.ts';

export interface RecordMemoryOptions {
  /** The device whose memory is recorded. Default cpu. */
  readonly device?: DeviceSpec | Device;
  /** Calls that are kept for an allocation, those inside this package counted; 0 for none. Default 40. */
  readonly stackDepth?: number;
}

/** What frees memory is most often the end of a scope: its near calls tell which. */
const freeDepth = 16;

/**
 * Runs `fn` and records every allocation and free of `device`'s memory: storages and workspaces with their
 * sizes, times, calls, ranges and ops; and what the allocator takes from the system. Where nothing records,
 * this costs one null check for each allocation. Throws a DeviceError if a recording of the device is under
 * way, and whatever `fn` throws.
 */
export function recordMemory<T>(fn: () => T, options: RecordMemoryOptions = {}): MemoryRecord<T> {
  const device = deviceOf(options.device ?? 'cpu');
  const segmentsBefore = device.memorySegments();
  const recorder = new Recorder(segmentsBefore, options.stackDepth ?? 40);
  if (device.observeMemory(recorder) !== null) {
    throw new DeviceError(`recordMemory: the memory of ${device.label} is being recorded already.`);
  }
  const startedAtMs = Date.now();
  recorder.outerObserver = observeOps(recorder);
  const stopListening = onRange(recorder);
  try {
    const result = fn();
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
    observeOps(recorder.outerObserver);
    stopListening();
    forgetStacks();
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };
/** Stacks are formatted at the end: that costs more than all else. */
type Captured<T> = T extends unknown ? Omit<Writable<T>, 'stack'> & { captured: Error | null } : never;
type OpenAllocation = Captured<Allocation> & { stack: readonly StackFrame[] };

class Recorder implements MemoryObserver, OpObserver, RangeListener {
  outerObserver: OpObserver | null = null;
  readonly #allocations: OpenAllocation[] = [];
  readonly #events: Captured<MemoryEvent>[] = [];
  readonly #live = new Map<number, OpenAllocation>();
  readonly #startMs = performance.now();
  readonly #stackDepth: number;
  /** The op that runs now, for its workspaces. */
  #op: string | null = null;

  constructor(segments: readonly MemorySegment[], stackDepth: number) {
    this.#stackDepth = stackDepth;
    for (const { blocks } of segments) {
      for (const { address, requestedBytes, allocatedBytes } of blocks) {
        if (requestedBytes !== null) this.#add(heldBefore(address, requestedBytes, allocatedBytes));
      }
    }
  }

  elapsedUs(): number {
    return (performance.now() - this.#startMs) * 1000;
  }

  allocated(address: number, requestedBytes: number, bytes: number, kind: AllocationKind): void {
    const timeUs = this.elapsedUs();
    const range = currentRange();
    const captured = captureStack(this.#stackDepth);
    const allocation: OpenAllocation = {
      ...heldBefore(address, requestedBytes, bytes),
      kind,
      startUs: timeUs,
      range,
      phase: phaseOf(range),
      op: this.#op,
      captured,
    };
    this.#add(allocation);
    this.#events.push({ action: 'allocate', timeUs, phase: allocation.phase, allocation, captured });
  }

  freed(address: number): void {
    const allocation = this.#live.get(address)!;
    this.#live.delete(address);
    allocation.endUs = this.elapsedUs();
    this.#events.push({ action: 'free', allocation, ...this.#now(allocation.endUs) });
  }

  segmentReserved(address: number, bytes: number): void {
    this.#events.push({ action: 'reserve', address, bytes, ...this.#now() });
  }

  segmentReleased(address: number, bytes: number): void {
    this.#events.push({ action: 'release', address, bytes, ...this.#now() });
  }

  enter(name: string): void {
    const phase = phaseOf(currentRange());
    if (phase === name)
      this.#events.push({ action: 'enter', timeUs: this.elapsedUs(), phase, captured: null });
  }

  exit(): void {}

  before(
    op: ComputeOp<never>,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void {
    this.#op = op.name;
    outputs.forEach((output, i) => {
      if (op.mutates?.[i] === undefined) this.#nameOutput(op.name, output);
    });
    this.outerObserver?.before(op, inputs, outputs, attributes);
  }

  after(op: ComputeOp<never>): void {
    this.#op = null;
    this.outerObserver?.after(op);
  }

  /** The recording, stacks formatted. */
  read(): { allocations: readonly Allocation[]; events: readonly MemoryEvent[] } {
    for (const allocation of this.#allocations) {
      if (allocation.captured) allocation.stack = framesOf(allocation.captured);
      allocation.captured = null;
    }
    const events = this.#events.map(({ captured, ...event }) => ({
      ...event,
      stack: captured ? framesOf(captured) : [],
    })) as MemoryEvent[];
    return { allocations: this.#allocations, events };
  }

  #add(allocation: OpenAllocation): void {
    this.#allocations.push(allocation);
    this.#live.set(allocation.address, allocation);
  }

  #now(timeUs = this.elapsedUs()): { timeUs: number; phase: string | null; captured: Error } {
    return {
      timeUs,
      phase: phaseOf(currentRange()),
      captured: captureStack(Math.min(freeDepth, this.#stackDepth)),
    };
  }

  #nameOutput(
    op: string,
    { storage, dtype, shape }: { storage: Tensor['storage']; dtype: DType; shape: Shape },
  ) {
    const allocation = this.#live.get(storage.buffer.address);
    if (!allocation || allocation.startUs === null) return;
    allocation.op = op;
    allocation.dtype = dtype;
    allocation.shape = shape;
  }
}

function heldBefore(address: number, requestedBytes: number, bytes: number): OpenAllocation {
  return {
    address,
    requestedBytes,
    bytes,
    kind: null,
    startUs: null,
    endUs: null,
    range: [],
    phase: null,
    op: null,
    dtype: null,
    shape: null,
    stack: [],
    captured: null,
  };
}
