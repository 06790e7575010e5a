import type { DeviceBuffer } from '../base/device-memory.ts';
import type { MemorySegment } from '../base/memory-observer.ts';
import type { MemoryQueue } from './queue.ts';

/** Where blocks go back to: those of one queue. */
export interface BlockOwner {
  readonly queue: MemoryQueue;
}

/** A piece of a segment: handed out, free, or between the two. Pieces of one segment are linked by address. */
export class Block implements DeviceBuffer {
  byteLength = 0;
  /** What it is, for recordings; null where nobody gave it a name. */
  name: string | null = null;
  readonly address: number;
  /** Bytes, at least `byteLength`; a multiple of 512. */
  size: number;
  /** Whether someone holds it. */
  isLive = false;
  /** Whether it is among the free blocks. One that is neither waits for other queues; see `QueueBlocks.fenced`. */
  isFree = false;
  readonly isSmall: boolean;
  /** Where it goes back to. */
  readonly owner: BlockOwner;
  /** Queues other than the owner's that work on it was put on since it was handed out; null for none. */
  users: MemoryQueue[] | null = null;
  previous: Block | null = null;
  next: Block | null = null;
  /** Neighbours among the free blocks of one size. */
  freeAbove: Block | null = null;
  freeBelow: Block | null = null;

  constructor(address: number, size: number, isSmall: boolean, owner: BlockOwner) {
    this.address = address;
    this.size = size;
    this.isSmall = isSmall;
    this.owner = owner;
  }

  /** Notes that work on this block was put on `queue`: it will not be handed out again before that has run. */
  usedBy(queue: MemoryQueue): void {
    if (queue === this.owner.queue) return;
    if (this.users === null) this.users = [queue];
    else if (!this.users.includes(queue)) this.users.push(queue);
  }

  /** Makes `queue` wait for what others have been given to do with this block so far. */
  awaitUsers(queue: MemoryQueue): void {
    const { users } = this;
    if (users === null) return;
    this.users = null;
    for (const user of users) {
      if (user === queue) continue;
      const event = user.recordEvent({ timing: false });
      queue.waitFor(event);
      event.dispose();
    }
  }
}

/** Cuts `block` down to `size`; returns the rest, which is free. */
export function splitBlock(block: Block, size: number): Block {
  const rest = new Block(block.address + size, block.size - size, block.isSmall, block.owner);
  block.size = size;
  rest.isFree = true;
  rest.previous = block;
  rest.next = block.next;
  if (rest.next) rest.next.previous = rest;
  block.next = rest;
  return rest;
}

/** Makes one block of `block` and the one after it. */
export function absorbNext(block: Block, next: Block): void {
  block.size += next.size;
  block.next = next.next;
  if (block.next) block.next.previous = block;
}

/** What a segment that begins with `first` holds. */
export function describeSegment(first: Block): MemorySegment {
  const blocks = [];
  let bytes = 0;
  for (let block: Block | null = first; block; block = block.next) {
    const { address, size, isLive, byteLength, name } = block;
    bytes += size;
    blocks.push({
      address,
      size,
      requestedBytes: isLive ? byteLength : null,
      allocatedBytes: isLive ? size : 0,
      ...(isLive && name !== null ? { name } : {}),
    });
  }
  return { address: first.address, bytes, blocks };
}
