import { BufferPool } from '../../src/devices/cpu/buffer-pool.ts';
import { CachingAllocator } from '../../src/devices/cuda/memory/allocator.ts';
import { OutOfMemoryError } from '../../src/index.ts';

/**
 * Runs `fn` with its allocation number `refused`, from 0, finding no memory on any device, be it of a tensor or of a
 * workspace. Tells whether there was such an allocation, and the error that `fn` ended in, null for none.
 */
export function withoutMemoryAt(refused: number, fn: () => void): { reached: boolean; error: unknown } {
  const [onCpu, onCuda] = [BufferPool.prototype.allocate, CachingAllocator.prototype.allocate];
  let next = 0;
  BufferPool.prototype.allocate = function (byteLength, kind) {
    if (next++ !== refused) return onCpu.call(this, byteLength, kind);
    throw new OutOfMemoryError({ device: 'cpu', requestedBytes: byteLength, heldBytes: 0, freeBytes: 0 });
  };
  CachingAllocator.prototype.allocate = function (byteLength, kind) {
    return next++ === refused ? null : onCuda.call(this, byteLength, kind);
  };
  let error: unknown = null;
  try {
    fn();
  } catch (thrown) {
    error = thrown;
  } finally {
    BufferPool.prototype.allocate = onCpu;
    CachingAllocator.prototype.allocate = onCuda;
  }
  return { reached: next > refused, error };
}
