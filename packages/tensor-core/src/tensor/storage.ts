import type { Device, DeviceBuffer } from '../devices/device.ts';

/**
 * Device memory shared by tensors. It is counted: each live tensor handle and each tape entry that saved it
 * holds one reference, and the memory goes back to the device with the last. The garbage collector is too
 * slow for GPU memory.
 */
export class Storage {
  readonly device: Device;
  readonly byteLength: number;
  /** Replaced by devices that write "in place" into a fresh buffer. */
  buffer: DeviceBuffer;
  /** Counts writes after creation, so that backward can tell that a saved tensor has changed. */
  version = 0;
  /** Whether a leaf that requires a gradient lies here: autocast casts it once a region, not once a use. */
  holdsParameter = false;
  #references = 1;

  constructor(device: Device, byteLength: number) {
    this.device = device;
    this.byteLength = byteLength;
    this.buffer = device.allocate(byteLength);
  }

  get references(): number {
    return this.#references;
  }

  retain(): this {
    this.#references++;
    return this;
  }

  release(): void {
    if (--this.#references === 0) this.device.free(this.buffer);
  }
}
