import { BufferPool } from '../../src/onnx/buffer-pool.ts';
import { CachingAllocator } from '@roofline/cuda/parts';
import { DeviceError, OutOfMemoryError, observeOps } from '../../src/index.ts';

/** How an interrupted function ended. */
export interface Interrupted {
  /** Whether it reached the step that was to fail. */
  readonly reached: boolean;
  /** What it threw; null if nothing. */
  readonly error: unknown;
}

/** Runs `fn` with step number `failing`, from 0, failing. */
export type Interrupt = (failing: number, fn: () => void) => Interrupted;

function errorOf(fn: () => void): unknown {
  try {
    fn();
    return null;
  } catch (error) {
    return error;
  }
}

/** Steps are allocations, of tensors and of workspaces: one finds no memory. */
export const withoutMemoryAt: Interrupt = (failing, fn) => {
  const [onCpu, onCuda] = [BufferPool.prototype.allocate, CachingAllocator.prototype.allocate];
  let next = 0;
  BufferPool.prototype.allocate = function (byteLength, kind) {
    if (next++ !== failing) return onCpu.call(this, byteLength, kind);
    throw new OutOfMemoryError({ device: 'cpu', requestedBytes: byteLength, heldBytes: 0, freeBytes: 0 });
  };
  CachingAllocator.prototype.allocate = function (byteLength, kind) {
    return next++ === failing ? null : onCuda.call(this, byteLength, kind);
  };
  const error = errorOf(fn);
  BufferPool.prototype.allocate = onCpu;
  CachingAllocator.prototype.allocate = onCuda;
  return { reached: next > failing, error };
};

/** Steps are the ops inside: one fails on the device, once its outputs are allocated. */
export const failingOpAt: Interrupt = (failing, fn) => {
  let next = 0;
  const stop = observeOps({
    before: ({ name }) => {
      if (next++ === failing) throw new DeviceError(`${name}: fails on purpose`);
    },
  });
  const error = errorOf(fn);
  stop();
  return { reached: next > failing, error };
};
