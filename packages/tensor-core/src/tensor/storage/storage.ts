import type { Device, DeviceBuffer } from '../../devices/device.ts';
import { DisposedError } from '../../errors.ts';
import { ParameterRegions } from './parameter-regions.ts';
import { type Region, WriteVersions } from './write-versions.ts';

/** A part of a storage that something works on beside the ops, and its name. */
export interface Hold {
  readonly region: Region;
  readonly holder: string;
}

const noHolds: readonly Hold[] = [];

let made = 0;

/** How many storages this process has made: those made from now on have higher serial numbers. */
export function storagesMade(): number {
  return made;
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
  /** Replaced by devices that write "in place" into a fresh buffer. */
  buffer: DeviceBuffer;
  /** Live tensor handles: with one alone, nothing else sees what it writes. */
  handles = 0;
  /** Null until the first write: most storages are written by the op that makes them, and never again. */
  #writes: WriteVersions | null = null;
  #parameters: ParameterRegions | null = null;
  #holds: Set<Hold> | null = null;
  #references = 1;

  /** `buffer` is memory of the device that it is to own. Default: it allocates its own. */
  constructor(device: Device, byteLength: number, buffer: DeviceBuffer = device.allocate(byteLength)) {
    this.device = device;
    this.byteLength = byteLength;
    this.buffer = buffer;
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
    if (--this.#references === 0) this.device.free(this.buffer);
  }

  /** Counts writes after creation; see `writtenSince`. */
  get version(): number {
    return this.#writes?.version ?? 0;
  }

  /** Notes that bytes of `region` are being written. */
  noteWrite(region: Region): void {
    this.#writes ??= new WriteVersions();
    if (region.start === 0 && region.end === this.byteLength) this.#writes.recordWhole();
    else this.#writes.record(region);
  }

  /** Whether a byte of `region` was written since `version` was read. */
  writtenSince(version: number, region: Region): boolean {
    return this.#writes?.writtenSince(version, region) ?? false;
  }

  /**
   * Keeps the memory, at its place, for something that works on `region` beside the ops, such as a collective under
   * way. In-place ops may not write there meanwhile; their error names the holder. Returns a function that lets go.
   * Throws a DisposedError if the memory has gone back to the device already.
   */
  hold(region: Region, holder: string): () => void {
    this.retain();
    const hold = { region, holder };
    this.#holds ??= new Set();
    this.#holds.add(hold);
    return () => {
      if (this.#holds!.delete(hold)) this.release();
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
