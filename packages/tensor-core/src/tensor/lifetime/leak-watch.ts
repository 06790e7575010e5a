import { checkFunction, bytesInWords } from '@roofline/cuda/host';
import type { Device } from '../device.ts';
import type { TapeNode } from '../tape/tape.ts';
import type { DType } from '../../base/dtype.ts';
import { type Shape, formatShape } from '../../base/shape.ts';
import type { Storage } from '../storage/storage.ts';
import type { Region } from '../storage/write-versions.ts';
import { forceCollection } from './force-collection.ts';

/** What a handle outside every scope holds, freed if the garbage collector finds it undisposed. */
export interface Held {
  readonly storage: Storage;
  readonly dtype: DType;
  readonly shape: Shape;
  /** The tape entry that made the tensor, once there is one. */
  node: TapeNode | null;
  /** Its region among its storage's parameters, while it is a leaf that requires a gradient. */
  region: Region | null;
  /** Bytes that count as waiting for the collector. */
  readonly bytes: number;
}

/** The part of a device's memory that tensors outside scopes take before garbage is looked for among them. */
export const collectionShare = { ofTotal: 1 / 16 };
/** Smaller tensors are left to the collector's own time: their number, not their size, is what costs. */
const leastBytes = 2 ** 16;

/** The large tensors outside scopes of one device. */
class Unscoped {
  readonly handles = new Map<Held, WeakRef<object>>();
  readonly shareBytes: number;
  bytes = 0;
  /** Garbage is looked for when they are more. */
  limitBytes: number;

  constructor(device: Device) {
    this.shareBytes = device.memoryStatistics().totalBytes * collectionShare.ofTotal;
    this.limitBytes = this.shareBytes;
  }
}

const unscoped = new Map<Device, Unscoped>();
let hasWarned = false;

let onLeak: ((description: string) => void) | null = null;

/** Calls `listener` for every tensor that the garbage collector found undisposed; null stops that. */
export function reportLeaks(listener: ((description: string) => void) | null): void {
  if (listener !== null) checkFunction('reportLeaks', 'the listener', listener);
  onLeak = listener;
}

const collected = new FinalizationRegistry<Held>(letGo);

function letGo(held: Held): void {
  const { storage, node, region, dtype, shape } = held;
  forget(held);
  if (region) storage.parameters.remove(region);
  storage.dropHandle();
  storage.release();
  node?.release();
  onLeak?.(`${dtype} ${formatShape(shape)} on ${storage.device.label}`);
}

/**
 * Watches a handle until `stopWatching` is called with the result. Tensors in a scope are freed with it, so only those outside
 * are watched, which costs host time.
 */
export function watchForLeak(
  handle: Omit<Held, 'node' | 'region' | 'bytes'> & { readonly node: TapeNode | null },
  region: Region | null,
): Held {
  const { storage, dtype, shape, node } = handle;
  // Of several handles to a storage the first counts.
  const bytes = storage.handles === 1 && storage.byteLength >= leastBytes ? storage.byteLength : 0;
  const held = { storage, dtype, shape, node, region, bytes };
  collected.register(handle, held, held);
  if (storage.byteLength >= leastBytes) {
    const { device } = storage;
    let all = unscoped.get(device);
    if (!all) unscoped.set(device, (all = new Unscoped(device)));
    all.handles.set(held, new WeakRef(handle));
    all.bytes += bytes;
  }
  return held;
}

export function stopWatching(held: Held): void {
  collected.unregister(held);
  forget(held);
}

function forget(held: Held): void {
  const all = unscoped.get(held.storage.device);
  if (all?.handles.delete(held)) all.bytes -= held.bytes;
}

/** Whether tensors outside scopes take so much of a device that garbage among them should be freed. */
export function isCrowded(device: Device): boolean {
  const all = unscoped.get(device);
  return all !== undefined && all.bytes > all.limitBytes;
}

/**
 * Frees the large tensors outside scopes that nothing refers to any more, whose size the garbage collector does not know. Says
 * once, on standard error, what to do about them where they were much. Returns how many tensors it freed.
 */
export function freeGarbage(device: Device): number {
  const all = unscoped.get(device);
  if (all === undefined) return 0;
  const before = all.bytes;
  forceCollection();
  const garbage = [...all.handles].filter(([, handle]) => handle.deref() === undefined);
  for (const [held] of garbage) {
    collected.unregister(held);
    letGo(held);
  }
  const freedBytes = before - all.bytes;
  // Of tensors that are in use, those that come next are no reason to look again at once.
  all.limitBytes = all.bytes + Math.max(all.shareBytes, all.bytes / 2);
  if (freedBytes > all.shareBytes / 2) warnOnce(device, freedBytes);
  return garbage.length;
}

function warnOnce({ label }: Device, freedBytes: number): void {
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(
    `${bytesInWords(freedBytes)} of tensors on ${label} that nothing used any more waited for the garbage collector. Make ` +
      'them inside scope(() => ...), which frees them at its end, or dispose() of them; it is done late for you otherwise.',
    { type: 'RooflineWarning', code: 'ROOFLINE_TENSORS_OUTSIDE_SCOPES' },
  );
}
