import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import {
  byteSize,
  checkDType,
  checkFunction,
  checkOptions,
  checkText,
  describeValue,
  formatShape,
  sizeOf,
} from '@roofline/tensor-core';
import { replaceFile } from './replace-file.ts';
import {
  type SafetensorsEntry,
  type SafetensorsHeader,
  SafetensorsError,
  type TensorSpecification,
  checkMetadata,
  decodeHeader,
  decodeHeaderLength,
  encodeHeader,
  inOrderOfData,
  isIntegers,
  lengthBytes,
} from './safetensors-header.ts';

/** A tensor to write. `read` is called once, when its turn comes. */
export interface TensorSource extends TensorSpecification {
  /** The elements in row-major order, little-endian. */
  read(): Uint8Array;
}

/** One system call moves at most this much: some systems refuse 2 GiB or more. */
const maxTransferBytes = 2 ** 30;

/**
 * Writes a safetensors file, holding one tensor at a time, those of the largest elements first. A file that is there keeps
 * its permissions, and a link still leads to its file, also to one that was not there. The file appears under its name only
 * when all of it is on the disk: a machine that stops meanwhile leaves the one before. What a killed process has left of one,
 * `<name>.<16 digits>.partial`, the next call for this path removes, except on Windows and on file systems without locks.
 * Throws a SafetensorsError for a name given twice, a tensor that reads other bytes than its dtype and shape take, or a path
 * that is not a regular file, and what the file system throws.
 */
export function writeSafetensors(
  path: string,
  tensors: readonly TensorSource[],
  metadata: Readonly<Record<string, string>> = {},
): void {
  checkText('writeSafetensors', 'the path', path);
  checkSources(tensors);
  checkMetadata('writeSafetensors', metadata);
  const header = encodeHeader(tensors, metadata);
  const write = (file: number) => {
    let position = writeFully(file, header, 0);
    for (const tensor of inOrderOfData(tensors)) position = writeFully(file, bytesOf(tensor), position);
  };
  replaceFile(path, write, (reason) => new SafetensorsError(`writeSafetensors: ${reason}`));
}

/** A safetensors file that is open for reading. Dispose it, or close it. */
export class SafetensorsFile implements SafetensorsHeader {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, SafetensorsEntry>;
  readonly metadata: Readonly<Record<string, string>>;
  /** Null once it is closed: its number may then be that of another file. */
  #file: number | null;

  /** Reads and checks the header alone. Throws a SafetensorsError that names what is wrong with the file. */
  constructor(path: string) {
    checkText('SafetensorsFile', 'the path', path);
    this.path = path;
    this.#file = openToRead(path);
    try {
      const fileBytes = fstatSync(this.#file).size;
      if (fileBytes < lengthBytes)
        throw new SafetensorsError(
          `${path} is no safetensors file: it has ${fileBytes} bytes. Fetch or write it anew.`,
        );
      const length = decodeHeaderLength(path, this.#read(0, lengthBytes), fileBytes);
      const { tensors, metadata } = decodeHeader(path, this.#read(lengthBytes, length), fileBytes);
      this.tensors = tensors;
      this.metadata = metadata;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * The bytes of one tensor, in an array buffer of their own. Throws a SafetensorsError for an unknown name, and once the
   * file is closed.
   */
  read(name: string): Uint8Array<ArrayBuffer> {
    const entry = this.tensors.get(name);
    if (!entry) {
      const wanted = typeof name === 'string' ? `"${name}"` : describeValue(name);
      throw new SafetensorsError(`SafetensorsFile.read: ${this.path} has no tensor ${wanted}.`);
    }
    return this.#read(entry.byteOffset, entry.byteLength);
  }

  /** Some of its bytes: `byteLength` from byte `start` on. Throws what `read` throws, and for bytes that are not its. */
  readRange(name: string, start: number, byteLength: number): Uint8Array<ArrayBuffer> {
    const entry = this.tensors.get(name);
    if (entry && isIntegers([start, byteLength]) && start + byteLength <= entry.byteLength)
      return this.#read(entry.byteOffset + start, byteLength);
    throw new SafetensorsError(
      `SafetensorsFile.readRange: ${this.path} has no ${describeValue(byteLength)} bytes from ${describeValue(start)} on of ` +
        `${describeValue(name)}.`,
    );
  }

  #read(position: number, byteLength: number): Uint8Array<ArrayBuffer> {
    const file = this.#file;
    if (file === null) {
      throw new SafetensorsError(`SafetensorsFile.read: ${this.path} has been closed; open it anew.`);
    }
    const bytes = new Uint8Array(byteLength);
    for (let done = 0; done < byteLength;) {
      const length = Math.min(byteLength - done, maxTransferBytes);
      const count = readSync(file, bytes, done, length, position + done);
      if (count === 0)
        throw new SafetensorsError(`${this.path} ends at byte ${position + done}, inside a tensor.`);
      done += count;
    }
    return bytes;
  }

  /** Closing twice is harmless. */
  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function openToRead(path: string): number {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (cause) {
    throw new SafetensorsError(`${path} cannot be opened: ${(cause as Error).message}.`, { cause });
  }
  if (!fstatSync(file).isDirectory()) return file;
  closeSync(file);
  throw new SafetensorsError(`${path} is a folder, not a safetensors file; name the file in it.`);
}

function checkSources(tensors: readonly TensorSource[]): void {
  if (!Array.isArray(tensors)) {
    throw new SafetensorsError(`writeSafetensors: takes a list of tensors, not ${describeValue(tensors)}.`);
  }
  for (const source of tensors as readonly TensorSource[]) {
    checkOptions('writeSafetensors: a tensor', source, ['name', 'dtype', 'shape', 'read']);
    checkText('writeSafetensors', "a tensor's name", source.name);
    checkDType('writeSafetensors', source.dtype);
    checkFunction('writeSafetensors', 'read', source.read);
    if (isIntegers(source.shape)) continue;
    throw new SafetensorsError(
      `writeSafetensors: the shape of "${source.name}" must be a list of whole numbers of zero or more, not ${describeValue(source.shape)}.`,
    );
  }
}

/** Any other number of them would leave all tensors after this one at other places than the header says. */
function bytesOf(source: TensorSource): Uint8Array {
  const { name, dtype, shape } = source;
  const bytes = source.read();
  const expected = sizeOf(shape) * byteSize(dtype);
  if (bytes instanceof Uint8Array && bytes.byteLength === expected) return bytes;
  const given = bytes instanceof Uint8Array ? `${bytes.byteLength} bytes` : describeValue(bytes);
  throw new SafetensorsError(
    `writeSafetensors: "${name}" is ${dtype} ${formatShape(shape)}, ${expected} bytes in a Uint8Array, but its read() gave ${given}.`,
  );
}

/** Writes all of `bytes`; returns the position after them. */
function writeFully(file: number, bytes: Uint8Array, position: number): number {
  for (let done = 0; done < bytes.byteLength;) {
    const length = Math.min(bytes.byteLength - done, maxTransferBytes);
    done += writeSync(file, bytes, done, length, position + done);
  }
  return position + bytes.byteLength;
}
