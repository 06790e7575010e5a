import { DeviceError } from '../base/errors.ts';
import { checkText } from '../base/check-value.ts';
import type { Block } from './block.ts';
import type { MemoryQueue, QueueEvent } from './queue.ts';
import { FreeBlocks } from './free-blocks.ts';

export const segmentSizes = ['rounded', 'exact'] as const;
/**
 * How large a segment is that a pool takes for a block: `rounded` up, so that others find room there, or `exact`ly as large,
 * for memory that is allocated once and held.
 */
export type SegmentSize = (typeof segmentSizes)[number];

/** A block that its holder gave back while other queues still used it, and the points where they are done. */
interface FencedBlock {
  readonly block: Block;
  readonly done: readonly QueueEvent[];
}

/** Blocks that nobody holds. */
export class CachedBlocks {
  readonly free = new FreeBlocks();
  fenced: FencedBlock[] = [];
}

/** The cached blocks of one pool for one queue: those of small and of large segments. */
export class QueueBlocks {
  readonly pool: MemoryPool;
  readonly queue: MemoryQueue;
  readonly small = new CachedBlocks();
  readonly large = new CachedBlocks();

  constructor(pool: MemoryPool, queue: MemoryQueue) {
    this.pool = pool;
    this.queue = queue;
  }
}

/**
 * Memory with segments of its own: what is allocated inside `CudaDevice.withPool(pool, fn)` comes from here, so that
 * nothing else gets that memory, freed or not, for as long as the pool lives. A device begins with one for all;
 * `CudaDevice.createPool` makes another.
 */
export class MemoryPool {
  /** Bytes of blocks handed out, and of segments held. They are part of the device's statistics. */
  allocatedBytes = 0;
  reservedBytes = 0;
  isReleased = false;
  /** @internal */
  readonly segmentSize: SegmentSize;
  /**
   * How many calls of `withPool` allocate from it now, nested ones included.
   *
   * @internal
   */
  entered = 0;
  /**
   * The first block of each segment: splits and merges keep it.
   *
   * @internal
   */
  readonly segments = new Set<Block>();
  readonly #byQueue = new Map<MemoryQueue, QueueBlocks>();
  readonly #giveBack: (pool: MemoryPool) => void;
  readonly #hold: (pool: MemoryPool, name: string) => Block[];

  constructor(
    segmentSize: SegmentSize,
    giveBack: (pool: MemoryPool) => void,
    hold: (pool: MemoryPool, name: string) => Block[],
  ) {
    this.segmentSize = segmentSize;
    this.#giveBack = giveBack;
    this.#hold = hold;
  }

  /**
   * The blocks for `queue`.
   *
   * @internal
   */
  blocksOf(queue: MemoryQueue): QueueBlocks {
    let blocks = this.#byQueue.get(queue);
    if (!blocks) this.#byQueue.set(queue, (blocks = new QueueBlocks(this, queue)));
    return blocks;
  }

  /** @internal */
  allBlocks(): Iterable<QueueBlocks> {
    return this.#byQueue.values();
  }

  /**
   * Hands out all that is free in it, under a name for recordings: memory that something works in which allocates no
   * more, such as a CUDA graph, counts as allocated. The blocks are the caller's to free.
   */
  holdFree(name: string): Block[] {
    checkText('holdFree', 'the name', name);
    return this.#hold(this, name);
  }

  /** Gives every segment without a live block back to the system, as the device's `emptyCache` does of the default pool. */
  emptyCache(): void {
    this.#giveBack(this);
  }

  /**
   * Ends the pool: each segment goes back to the system, now or once its last block is freed, and nothing is
   * allocated from it any more. Once is enough; more does nothing. Throws a DeviceError inside its own `withPool`.
   */
  release(): void {
    if (this.isReleased) return;
    if (this.entered > 0)
      throw new DeviceError('release: the pool is in use by withPool; release it after that.');
    this.isReleased = true;
    this.#giveBack(this);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
