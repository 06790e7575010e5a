import { type AllocationKind, type MemorySegment, checkObject, wrongArgument } from '@roofline/cuda/host';
import type { DType } from '../../base/dtype.ts';
import type { Shape } from '../../base/shape.ts';
import type { StackFrame } from './call-stack.ts';

/** Memory that was held for a while. Times are microseconds of the host's clock since the recording began. */
export interface Allocation {
  readonly address: number;
  /** Bytes that were asked for. */
  readonly requestedBytes: number;
  /** Bytes as the device's statistics count them. */
  readonly bytes: number;
  /** Null for what was held before the recording began; then range and stack are empty, and op is null except for an arena. */
  readonly kind: AllocationKind | null;
  /** Null for what was held before the recording began. */
  readonly startUs: number | null;
  /** Null for what was still held at its end. */
  readonly endUs: number | null;
  /** The ranges that were open, outermost first. */
  readonly range: readonly string[];
  readonly phase: string | null;
  /** The op that it was made for, or `arena of step` for the memory that a compiled function `step` works in on a GPU. */
  readonly op: string | null;
  /** The dtype of the op's output that it holds; null for other memory. */
  readonly dtype: DType | null;
  readonly shape: Shape | null;
  /** Innermost call first, without those of tensor-core and of Node. */
  readonly stack: readonly StackFrame[];
}

/** What happened, in its order. */
export type MemoryEvent =
  | {
      readonly action: 'allocate' | 'free';
      readonly timeUs: number;
      readonly phase: string | null;
      readonly allocation: Allocation;
    }
  | {
      /** The allocator gets a segment from the system, or gives it back. */
      readonly action: 'reserve' | 'release';
      readonly timeUs: number;
      readonly phase: string | null;
      readonly address: number;
      readonly bytes: number;
      readonly stack: readonly StackFrame[];
    }
  | {
      /** A phase begins. */
      readonly action: 'enter';
      readonly timeUs: number;
      readonly phase: string;
    };

/** Everything that a device's allocator did while a function ran. */
export interface MemoryRecord<T = unknown> {
  /** What the function returned. */
  readonly result: T;
  /** As `Device.label`. */
  readonly device: string;
  /** When the recording began: milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly durationUs: number;
  /** First what was held before, then what was allocated, in order. */
  readonly allocations: readonly Allocation[];
  readonly events: readonly MemoryEvent[];
  /** The allocator's segments when the recording began, in bytes. */
  readonly reservedBytesBefore: number;
  /** The allocator's state when it ended. */
  readonly segments: readonly MemorySegment[];
}

/** Throws a RooflineError (code ARGUMENT) unless `record` looks like a result of recordMemory(), as far as it is read. */
export function checkRecord(
  owner: string,
  record: Pick<MemoryRecord, 'events'> & Partial<MemoryRecord>,
): void {
  checkObject(owner, 'the record', record);
  const { events, allocations = [], segments = [] } = record;
  if ([events, allocations, segments].every(Array.isArray)) return;
  throw wrongArgument(owner, 'the record', 'what recordMemory() gave', record);
}

const phases: ReadonlySet<string> = new Set(['forward', 'backward', 'optimizer']);

export function isPhase(range: string): boolean {
  return phases.has(range);
}

/** The phase that ranges name: the outermost `forward`, `backward` or `optimizer`. */
export function phaseOf(range: readonly string[]): string | null {
  return range.find((name) => phases.has(name)) ?? null;
}
