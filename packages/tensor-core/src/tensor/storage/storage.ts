import type { Device } from '../device.ts';
import { type DeviceBuffer, DisposedError } from '@roofline/cuda/host';
import { tracing } from '../tracing.ts';
import { ParameterRegions } from './parameter-regions.ts';
import { watchedChanges } from './watched-changes.ts';
import type { JointTime } from './write-time.ts';
import { type Region, WriteVersions } from './write-versions.ts';

/** A part of a storage that something works on beside the ops, and its name. */
export interface Hold {
  readonly region: Region;
  readonly holder: string;
}

const noHolds: readonly Hold[] = [];
let holdCount = 0;

let made = 0;

/** How many storages this process has made: those made from now on have higher serial numbers. */
export function storagesMade(): number {
  return made;
}

/** Whether anything is held, of any storage; see `hold`. */
export function isAnyHeld(): boolean {
  return holdCount > 0;
}

/**
 * Device memory shared by tensors. It is counted: each live tensor handle and each tape entry that saved it
 * holds one reference, and the memory goes back to the device with the last. The garbage collector is too
 * slow for GPU memory.
 */
export class Storage {
  /** Storages are numbered as they are made, from 1 on. */
  readonly serial = ++made;
  readonly device: Device;
  readonly byteLength: number;
  /** Null until the first write: most storages are written by the op that makes them, and never again. */
  #writes: WriteVersions | null = null;
  #parameters: ParameterRegions | null = null;
  #holds: Set<Hold> | null = null;
  #buffer: DeviceBuffer;
  /** Where the buffer is only lent: gives this storage memory of its own, with the same elements. */
  settle: (() => void) | null = null;
  #handles = 0;
  #watchers = 0;
  #references = 1;

  /** `buffer` is memory of the device that it is to own. Default: it allocates its own. */
  constructor(device: Device, byteLength: number, buffer: DeviceBuffer = device.allocate(byteLength)) {
    this.device = device;
    this.byteLength = byteLength;
    this.#buffer = buffer;
  }

  get buffer(): DeviceBuffer {
    return this.#buffer;
  }

  /** For devices that write "in place" into a fresh buffer. */
  set buffer(buffer: DeviceBuffer) {
    this.#buffer = buffer;
    if (this.#watchers > 0) watchedChanges.handles++;
  }

  /** Live tensor handles: with one alone, nothing else sees what it writes. */
  get handles(): number {
    return this.#handles;
  }

  addHandle(): void {
    this.#handles++;
  }

  dropHandle(): void {
    this.#handles--;
    if (this.#watchers > 0) watchedChanges.handles++;
  }

  /** Whether what happens to it is counted, in `watchedChanges`. */
  get isWatched(): boolean {
    return this.#watchers > 0;
  }

  /** To be taken back by `unwatch`. */
  watch(): void {
    this.#watchers++;
  }

  unwatch(): void {
    this.#watchers--;
  }

  get references(): number {
    return this.#references;
  }

  /** Throws a DisposedError if the memory has gone back to the device already. */
  retain(): this {
    if (this.#references <= 0) throw this.#gone('retain');
    this.#references++;
    return this;
  }

  /** Throws a DisposedError if nobody holds a reference. */
  release(): void {
    if (this.#references <= 0) throw this.#gone('release');
    if (--this.#references === 0) this.device.free(this.#buffer);
  }

  /** Grows with each write after creation, which does not count; see `writtenSince`. */
  get version(): number {
    return this.#writes?.version ?? 0;
  }

  /** Notes that bytes of `region` are being written. */
  noteWrite(region: Region): void {
    this.#writes ??= new WriteVersions();
    if (region.start === 0 && region.end === this.byteLength) this.#writes.recordWhole();
    else this.#writes.record(region);
    if (this.#watchers > 0) watchedChanges.writes++;
  }

  /** From now on each of `write`'s notes is a write of `region`, until `leaveWrite`. */
  joinWrite(write: JointTime, region: Region): void {
    this.#writes ??= new WriteVersions();
    this.#writes.join(write, region);
  }

  leaveWrite(write: JointTime): void {
    this.#writes?.leave(write);
  }

  /** Whether a byte of `region` was written since `version` was read. */
  writtenSince(version: number, region: Region): boolean {
    return this.#writes?.writtenSince(version, region) ?? false;
  }

  /**
   * Keeps the memory, at its place, for something that works on `region` beside the ops, such as a collective under
   * way. In-place ops may not write there meanwhile; their error names the holder. Returns a function that lets go.
   * Throws a DisposedError if the memory has gone back to the device already, and a CompileError in a compiled function.
   */
  hold(region: Region, holder: string): () => void {
    tracing.active?.refuse(
      `${holder} works on memory beside the ops, which replays would not repeat`,
      'Call it outside, on what the compiled function returns',
    );
    this.settle?.();
    this.retain();
    const hold = { region, holder };
    this.#holds ??= new Set();
    this.#holds.add(hold);
    holdCount++;
    return () => {
      if (!this.#holds!.delete(hold)) return;
      holdCount--;
      this.release();
    };
  }

  /** What holds a byte of `region`. */
  holdsOn({ start, end }: Region): readonly Hold[] {
    if (this.#holds === null || this.#holds.size === 0) return noHolds;
    return [...this.#holds].filter(({ region }) => region.start < end && start < region.end);
  }

  /** Where leaves that require a gradient lie: autocast casts each once a region, not once a use. */
  get parameters(): ParameterRegions {
    this.#parameters ??= new ParameterRegions();
    return this.#parameters;
  }

  /** The leaf that requires a gradient and holds all of `region`; null if there is none. */
  parameterAround(region: Region): Region | null {
    return this.#parameters?.around(region) ?? null;
  }

  /** Whether `parameterAround` could find any. */
  get holdsParameters(): boolean {
    return this.#parameters !== null && this.#parameters.count > 0;
  }

  #gone(action: string): DisposedError {
    return new DisposedError(
      `${action}: a storage of ${this.byteLength} bytes on ${this.device.label} has been freed already.`,
    );
  }
}
