/** `storage` is what users hold, tensors say; `workspace` lives as long as one kernel, or belongs to a library. */
export type AllocationKind = 'storage' | 'workspace';

/** Called with what an allocator does, while it does it. Addresses are the device's, sizes bytes. */
export interface MemoryObserver {
  /** `bytes` is what the device's statistics count, at least `requestedBytes`; `name` what it is, if not for an op. */
  allocated(
    address: number,
    requestedBytes: number,
    bytes: number,
    kind: AllocationKind,
    name?: string,
  ): void;
  freed(address: number): void;
  segmentReserved(address: number, bytes: number): void;
  segmentReleased(address: number, bytes: number): void;
}

/** Memory that an allocator got from the system in one piece. */
export interface MemorySegment {
  readonly address: number;
  readonly bytes: number;
  /** Without gaps, by address. */
  readonly blocks: readonly MemoryBlock[];
}

/** A piece of a segment: handed out, or free. */
export interface MemoryBlock {
  readonly address: number;
  readonly size: number;
  /** What was asked for; null for a free block. */
  readonly requestedBytes: number | null;
  /** What the device's statistics count for it; 0 for a free block. */
  readonly allocatedBytes: number;
  /** What it is, where somebody gave it a name: the arena of a compiled function. */
  readonly name?: string;
}
