import type { Device } from '../device.ts';
import { type DeviceBuffer, DisposedError, RooflineError } from '@roofline/cuda/host';
import { tracing } from '../tracing.ts';
import { ParameterRegions } from './parameter-regions.ts';
import { watchedChanges } from './watched-changes.ts';
import type { JointTime } from './write-time.ts';
import { type Region, WriteVersions } from './write-versions.ts';

/** A part of a storage that something other than ops works on, and the name of that. */
export interface Hold {
  readonly region: Region;
  readonly holder: string;
}

const noHolds: readonly Hold[] = [];
let holdCount = 0;

let made = 0;

/** How many storages this process has made; later ones have higher serial numbers. */
export function storagesMade(): number {
  return made;
}

/** Whether anything is held, in any storage; see `hold`. */
export function isAnyHeld(): boolean {
  return holdCount > 0;
}

/**
 * Device memory shared by tensors. It is counted: each live tensor handle and each tape entry that saved it
 * holds one reference, and the memory goes back to the device with the last. The garbage collector is too
 * slow for GPU memory.
 */
export class Storage {
  /** Storages are numbered in the order in which they are made, from 1 on. @internal */
  readonly serial = ++made;
  readonly device: Device;
  readonly byteLength: number;
  /** Null before the first write: most storages are written only by the op that makes them. */
  #writes: WriteVersions | null = null;
  #parameters: ParameterRegions | null = null;
  #holds: Set<Hold> | null = null;
  #buffer: DeviceBuffer;
  /**
   * If the buffer is only lent, gives this storage memory of its own, with the same elements.
   *
   * @internal
   */
  settle: (() => void) | null = null;
  /** Brings back memory that was let go; null where it is here. */
  #bringBack: (() => void) | null = null;
  /** Whether the memory is no longer this storage's to free: it is another's now, or was let go. */
  #hasMoved = false;
  /** What works on the memory after the ops that began that have returned; null for nothing. */
  #underWay: (() => void)[] | null = null;
  #handles = 0;
  #watchers = 0;
  #references = 1;
  #keepers = 0;

  /** `buffer` is device memory that it takes over. Default: it allocates its own. */
  constructor(device: Device, byteLength: number, buffer: DeviceBuffer = device.allocate(byteLength)) {
    this.device = device;
    this.byteLength = byteLength;
    this.#buffer = buffer;
  }

  /** The memory, once what is under way on it has ended: see `noteUnderWay`. */
  get buffer(): DeviceBuffer {
    if (this.#bringBack !== null || this.#hasMoved) throw this.#away();
    if (this.#underWay !== null) this.#awaitWork(this.#underWay);
    return this.#buffer;
  }

  /** For devices that write "in place" into a fresh buffer. */
  set buffer(buffer: DeviceBuffer) {
    this.#buffer = buffer;
    if (this.#watchers > 0) watchedChanges.handles++;
  }

  /**
   * Calls `wait` when the buffer is next asked for, once unless it throws: what a collective writes is waited for by its first
   * reader.
   *
   * @internal
   */
  noteUnderWay(wait: () => void): void {
    this.#underWay ??= [];
    this.#underWay.push(wait);
    if (this.#watchers > 0) watchedChanges.handles++;
  }

  #awaitWork(works: (() => void)[]): void {
    // One that throws stays: what it has not written must not be read.
    for (; works.length > 0; works.shift()) works[0]!();
    this.#underWay = null;
  }

  /** Whether the memory has been let go. */
  get isAway(): boolean {
    return this.#bringBack !== null;
  }

  /**
   * Gives the memory back to the device, and keeps all else: tensors, and what the tape has saved. `bringBack` is called before the
   * next use of one of these tensors, and must `moveIn` memory with the same elements. Sharded parameters are let go after
   * their use, and gathered for the next one. Throws a RooflineError (code HELD) while a collective works on it.
   */
  letGo(bringBack: () => void): void {
    const [hold] = this.#holds ?? [];
    if (hold)
      throw new RooflineError('HELD', `letGo: ${hold.holder} works on the memory; wait for it first.`);
    this.settle?.();
    if (this.#underWay !== null) this.#awaitWork(this.#underWay);
    if (this.#bringBack === null) {
      this.device.free(this.#buffer);
      tracing.active?.memoryLetGo(this);
    }
    this.#bringBack = bringBack;
  }

  /** Brings back memory that was let go. */
  bringBack(): void {
    this.#bringBack?.();
    if (this.#bringBack !== null) throw this.#away();
  }

  /**
   * Takes over the memory of `source`, which has as many bytes on the same device and is not used again, in place of memory that
   * was let go. Waits for what is under way on it. Nothing counts as written: the elements are those that were here.
   */
  moveIn(source: Storage): void {
    const buffer = source.buffer;
    tracing.active?.memoryMovedIn(this, source);
    source.#hasMoved = true;
    this.#buffer = buffer;
    this.#bringBack = null;
    if (this.#watchers > 0) watchedChanges.handles++;
  }

  /** The number of live tensor handles: if there is one, nothing else sees what it writes. @internal */
  get handles(): number {
    return this.#handles;
  }

  /** @internal */
  addHandle(): void {
    this.#handles++;
  }

  /** @internal */
  dropHandle(): void {
    this.#handles--;
    if (this.#watchers > 0) watchedChanges.handles++;
  }

  /** Whether `watchedChanges` counts what happens to it. @internal */
  get isWatched(): boolean {
    return this.#watchers > 0;
  }

  /** Counts what happens to it in `watchedChanges`, until `unwatch`. @internal */
  watch(): void {
    this.#watchers++;
  }

  /** @internal */
  unwatch(): void {
    this.#watchers--;
  }

  get references(): number {
    return this.#references;
  }

  /** Adds a reference. Throws a DisposedError if the memory has gone back to the device already. @internal */
  retain(): this {
    if (this.#references <= 0) throw this.#gone('retain');
    this.#references++;
    return this;
  }

  /** Drops a reference. Throws a DisposedError if there is none. @internal */
  release(): void {
    if (this.#references <= 0) throw this.#gone('release');
    if (--this.#references > 0) return;
    if (this.#bringBack !== null) this.#hasMoved = true;
    this.#bringBack = null;
    this.#freeUnlessKept();
  }

  #freeUnlessKept(): void {
    if (this.#references === 0 && this.#keepers === 0 && !this.#hasMoved) this.device.free(this.#buffer);
  }

  /**
   * Keeps the memory, for what works on it by its address, until the function that is returned is called. It counts as no reference:
   * nothing can read the storage once the last one is gone.
   *
   * @internal
   */
  keepMemory(): () => void {
    this.#keepers++;
    return () => {
      this.#keepers--;
      this.#freeUnlessKept();
    };
  }

  /** Grows with each write after creation. */
  get version(): number {
    return this.#writes?.version ?? 0;
  }

  /** Records that bytes of `region` are being written. */
  noteWrite(region: Region): void {
    this.#writes ??= new WriteVersions();
    if (region.start === 0 && region.end === this.byteLength) this.#writes.recordWhole();
    else this.#writes.record(region);
    if (this.#watchers > 0) watchedChanges.writes++;
  }

  /** From now on each time that `write` is noted counts as a write of `region`, until `leaveWrite`. @internal */
  joinWrite(write: JointTime, region: Region): void {
    this.#writes ??= new WriteVersions();
    this.#writes.join(write, region);
  }

  /** @internal */
  leaveWrite(write: JointTime): void {
    this.#writes?.leave(write);
  }

  /** Whether a byte of `region` was written since `version` was read. */
  writtenSince(version: number, region: Region): boolean {
    return this.#writes?.writtenSince(version, region) ?? false;
  }

  /**
   * Keeps the memory, in place, for something other than ops that works on `region`, such as a collective under way. In-place
   * ops may not write there meanwhile; their error names the holder. Returns a function that ends the hold. Throws a
   * DisposedError if the memory has gone back to the device already, and a CompileError in a compiled function.
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

  /** The holds on bytes of `region`. @internal */
  holdsOn({ start, end }: Region): readonly Hold[] {
    if (this.#holds === null || this.#holds.size === 0) return noHolds;
    return [...this.#holds].filter(({ region }) => region.start < end && start < region.end);
  }

  /** The regions of leaves that require a gradient: autocast casts each once per autocast region, not once per use. @internal */
  get parameters(): ParameterRegions {
    this.#parameters ??= new ParameterRegions();
    return this.#parameters;
  }

  /** The region of the leaf requiring a gradient that contains `region`; null if there is none. @internal */
  parameterAround(region: Region): Region | null {
    return this.#parameters?.around(region) ?? null;
  }

  /** Whether `parameterAround` could find any. @internal */
  get holdsParameters(): boolean {
    return this.#parameters !== null && this.#parameters.count > 0;
  }

  #away(): RooflineError {
    return new RooflineError(
      'AWAY',
      `a storage of ${this.byteLength} bytes on ${this.device.label} has been let go, and nothing has brought it back.`,
    );
  }

  #gone(action: string): DisposedError {
    return new DisposedError(
      `${action}: a storage of ${this.byteLength} bytes on ${this.device.label} has been freed already.`,
    );
  }
}
