import {
  type AllocationKind,
  type DeviceBuffer,
  type MemoryObserver,
  type MemorySegment,
  type MemoryStatistics,
  OutOfMemoryError,
  addressOf,
} from '@roofline/cuda/host';
import { adviseHugePages } from './huge-pages.ts';

/** Memory of the CPU device: a range of an array buffer, at an address that does not move. */
export class CpuBuffer implements DeviceBuffer {
  readonly byteLength: number;
  readonly block: Block;

  constructor(byteLength: number, block: Block) {
    this.byteLength = byteLength;
    this.block = block;
  }

  get address(): number {
    return this.block.address;
  }

  get memory(): ArrayBuffer {
    return this.block.memory;
  }

  /** Where the buffer starts in `memory`. */
  get byteOffset(): number {
    return this.block.byteOffset;
  }
}

interface Block {
  readonly capacity: number;
  readonly memory: ArrayBuffer;
  readonly byteOffset: number;
  readonly address: number;
  /** The bytes requested by the buffer that has it; null in the cache. */
  requestedBytes: number | null;
}

/** The system's memory: read rarely, because that costs tens of microseconds. */
export interface SystemMemory {
  /** Bytes that this process could still get without swapping, within its container's limit. */
  availableBytes(): number;
  /** Bytes of the machine, or of the container. */
  totalBytes(): number;
  /** Gives back other memory that this process keeps but does not use. */
  giveBack?(): void;
}

/** A cache line, and an AVX-512 register: loads that straddle lines are slower. */
const alignment = 64;
/** The fraction left for the runtime's own arena, JavaScript's heap and other programs. */
const reserveFraction = 0.03;
/** How many bytes are handed out between two checks of the system's memory. */
const uncheckedBytes = 64 * 2 ** 20;

/**
 * Hands out memory, and keeps what comes back for the next request of the same size class: page faults of fresh memory cost
 * more than most ops.
 */
export class BufferPool {
  /** Is told of allocations and frees, if there is one. */
  observer: MemoryObserver | null = null;
  readonly #system: SystemMemory;
  readonly #cached = new Map<number, Block[]>();
  /** Everything reserved from the system, handed out or cached. */
  readonly #blocks = new Set<Block>();
  #allocatedBytes = 0;
  #reservedBytes = 0;
  #peakAllocatedBytes = 0;
  #peakReservedBytes = 0;
  #live = 0;
  #sinceCheckBytes = Infinity;

  constructor(system: SystemMemory) {
    this.#system = system;
  }

  /** Uninitialised memory, aligned to 64 bytes. Throws an OutOfMemoryError before the system runs out. */
  allocate(byteLength: number, kind: AllocationKind = 'workspace'): CpuBuffer {
    const capacity = sizeClass(byteLength);
    const block = this.#cached.get(capacity)?.pop() ?? this.#reserve(capacity, byteLength);
    this.#live++;
    this.#allocatedBytes += byteLength;
    if (this.#allocatedBytes > this.#peakAllocatedBytes) this.#peakAllocatedBytes = this.#allocatedBytes;
    block.requestedBytes = byteLength;
    this.observer?.allocated(block.address, byteLength, byteLength, kind);
    return new CpuBuffer(byteLength, block);
  }

  free({ byteLength, block }: CpuBuffer): void {
    this.observer?.freed(block.address);
    block.requestedBytes = null;
    this.#live--;
    this.#allocatedBytes -= byteLength;
    const blocks = this.#cached.get(block.capacity);
    if (blocks) blocks.push(block);
    else this.#cached.set(block.capacity, [block]);
  }

  /** Gives unused blocks back to the system, at once. */
  emptyCache(): void {
    for (const blocks of this.#cached.values()) {
      for (const block of blocks) {
        // Detaching frees the memory now; the garbage collector would wait.
        block.memory.transfer(0);
        this.#blocks.delete(block);
        this.#reservedBytes -= block.capacity;
        this.observer?.segmentReleased(block.address, block.capacity);
      }
    }
    this.#cached.clear();
  }

  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  statistics(): MemoryStatistics {
    return {
      allocatedBytes: this.#allocatedBytes,
      reservedBytes: this.#reservedBytes,
      peakAllocatedBytes: this.#peakAllocatedBytes,
      peakReservedBytes: this.#peakReservedBytes,
      liveStorages: this.#live,
      totalBytes: this.#system.totalBytes(),
      freeBytes: this.#system.availableBytes(),
    };
  }

  /** Each block is a segment of its own. */
  segments(): MemorySegment[] {
    return [...this.#blocks].map(({ address, capacity, requestedBytes }) => ({
      address,
      bytes: capacity,
      blocks: [{ address, size: capacity, requestedBytes, allocatedBytes: requestedBytes ?? 0 }],
    }));
  }

  resetPeak(): void {
    this.#peakAllocatedBytes = this.#allocatedBytes;
    this.#peakReservedBytes = this.#reservedBytes;
  }

  #reserve(capacity: number, requestedBytes: number): Block {
    this.#sinceCheckBytes += capacity;
    if (this.#sinceCheckBytes > uncheckedBytes && !this.#fits(capacity)) {
      this.emptyCache();
      this.#system.giveBack?.();
      if (!this.#fits(capacity)) throw this.#outOfMemory(requestedBytes);
    }
    const block = this.#newBlock(capacity, requestedBytes);
    this.#blocks.add(block);
    this.observer?.segmentReserved(block.address, capacity);
    this.#reservedBytes += capacity;
    if (this.#reservedBytes > this.#peakReservedBytes) this.#peakReservedBytes = this.#reservedBytes;
    return block;
  }

  #fits(capacity: number): boolean {
    const total = this.#system.totalBytes();
    const reserve = total * reserveFraction;
    this.#sinceCheckBytes = 0;
    // The system counts pages only once they are written, so the sum of what was reserved is also compared with the whole
    // memory.
    return (
      capacity + reserve <= this.#system.availableBytes() && this.#reservedBytes + capacity + reserve <= total
    );
  }

  #newBlock(capacity: number, requestedBytes: number): Block {
    const memory = this.#memory(capacity + alignment, requestedBytes);
    const start = addressOf(new Uint8Array(memory));
    adviseHugePages(start, memory.byteLength);
    const byteOffset = (alignment - (start % alignment)) % alignment;
    return { capacity, memory, byteOffset, address: start + byteOffset, requestedBytes: null };
  }

  #memory(byteLength: number, requestedBytes: number): ArrayBuffer {
    try {
      return new ArrayBuffer(byteLength);
    } catch (cause) {
      throw this.#outOfMemory(requestedBytes, cause);
    }
  }

  #outOfMemory(requestedBytes: number, cause?: unknown): OutOfMemoryError {
    return new OutOfMemoryError(
      {
        device: 'cpu',
        requestedBytes,
        heldBytes: this.#reservedBytes,
        freeBytes: this.#system.availableBytes(),
      },
      { cause },
    );
  }
}

/** Rounds up so that at most an eighth is wasted and requests of similar size share blocks. */
export function sizeClass(byteLength: number): number {
  if (byteLength <= 1024) return Math.max(alignment, Math.ceil(byteLength / alignment) * alignment);
  const step = 2 ** (Math.floor(Math.log2(byteLength)) - 3);
  return Math.ceil(byteLength / step) * step;
}
