import { bytesInWords } from './bytes-in-words.ts';

/**
 * Every error that Roofline throws on purpose. `code` is stable and meant for programs; the message is meant
 * for people: it names the function or op, the values, and the remedy.
 */
export class RooflineError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** A device that is absent or not the right one, what it cannot do, or a failing driver call. */
export class DeviceError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('DEVICE', message, options);
  }
}

/** What was used after it had been disposed of: a tensor, memory of a GPU. */
export class DisposedError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('DISPOSED', message, options);
  }
}

/** What an OutOfMemoryError knows, in bytes. */
export interface OutOfMemoryDetails {
  device: string;
  requestedBytes: number;
  /** Bytes that this process holds on the device, live and cached. */
  heldBytes: number;
  /** Bytes that the device says are free. */
  freeBytes: number;
}

/** The device has no room, even after the allocator gave its cached blocks back; or the host, for what it is to read. */
export class OutOfMemoryError extends RooflineError {
  readonly details: OutOfMemoryDetails;

  constructor(details: OutOfMemoryDetails, options?: ErrorOptions) {
    super(
      'OUT_OF_MEMORY',
      `${details.device} is out of memory: asked for ${bytesInWords(details.requestedBytes)}, ` +
        `this process holds ${bytesInWords(details.heldBytes)}, free are ${bytesInWords(details.freeBytes)}. ` +
        'Take less at a time, such as a smaller batch, context or model, or free what is no longer needed.',
      options,
    );
    this.details = details;
  }
}

/** NVRTC refused a kernel. The message carries its log and the numbered source. */
export class KernelCompileError extends RooflineError {
  readonly log: string;
  readonly source: string;

  constructor(kernel: string, log: string, source: string, options?: ErrorOptions) {
    const numbered = source
      .split('\n')
      .map((line, index) => `${String(index + 1).padStart(4)} | ${line}`)
      .join('\n');
    super('KERNEL_COMPILE', `Kernel ${kernel} does not compile:\n${log}\n${numbered}`, options);
    this.log = log;
    this.source = source;
  }
}

/** A shared library that a device needs was not found. The message says where it was looked for. */
export class LibraryNotFoundError extends RooflineError {
  readonly library: string;

  constructor(library: string, searched: readonly string[], remedy: string, options?: ErrorOptions) {
    super(
      'LIBRARY_NOT_FOUND',
      `${library} was not found. Looked for: ${searched.join(', ')}. ${remedy} ` +
        '`diagnose()` shows the rest, as does `roofline doctor` of @roofline/bench-harness.',
      options,
    );
    this.library = library;
  }
}
