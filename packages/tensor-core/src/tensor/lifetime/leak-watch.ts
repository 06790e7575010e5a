import { checkFunction } from '@roofline/cuda/host';
import type { TapeNode } from '../tape/tape.ts';
import type { DType } from '../../base/dtype.ts';
import { type Shape, formatShape } from '../../base/shape.ts';
import type { Storage } from '../storage/storage.ts';
import type { Region } from '../storage/write-versions.ts';

/** What a handle outside every scope holds, freed if the garbage collector finds it undisposed. */
export interface Held {
  readonly storage: Storage;
  readonly dtype: DType;
  readonly shape: Shape;
  /** The tape entry that made the tensor, once there is one. */
  node: TapeNode | null;
  /** Its region among its storage's parameters, while it is a leaf that requires a gradient. */
  region: Region | null;
}

let onLeak: ((description: string) => void) | null = null;

/** Calls `listener` for every tensor that the garbage collector found undisposed; null stops that. */
export function reportLeaks(listener: ((description: string) => void) | null): void {
  if (listener !== null) checkFunction('reportLeaks', 'the listener', listener);
  onLeak = listener;
}

const collected = new FinalizationRegistry<Held>(({ storage, node, region, dtype, shape }) => {
  if (region) storage.parameters.remove(region);
  storage.dropHandle();
  storage.release();
  node?.release();
  onLeak?.(`${dtype} ${formatShape(shape)} on ${storage.device.label}`);
});

/**
 * Watches a handle until `stopWatching` is called with the result. Tensors in a scope are freed with it, so only those outside
 * are watched, which costs host time.
 */
export function watchForLeak(
  handle: Omit<Held, 'node' | 'region'> & { readonly node: TapeNode | null },
  region: Region | null,
): Held {
  const { storage, dtype, shape, node } = handle;
  const held = { storage, dtype, shape, node, region };
  collected.register(handle, held, held);
  return held;
}

export function stopWatching(held: Held): void {
  collected.unregister(held);
}
