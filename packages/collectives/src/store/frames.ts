// The store's messages: a length of four bytes, then fields, each with a length of its own. Numbers are little-endian.

/** Of a message's length, and of a field's. */
export const lengthBytes = 4;

/** A message of byte strings; texts are written as UTF-8. */
export function encodeFrame(fields: readonly (Uint8Array | string)[]): Buffer {
  const parts: Buffer[] = [Buffer.alloc(lengthBytes)];
  let byteLength = 0;
  for (const field of fields) {
    const bytes = typeof field === 'string' ? Buffer.from(field) : Buffer.from(field);
    const length = Buffer.alloc(lengthBytes);
    length.writeUInt32LE(bytes.length);
    parts.push(length, bytes);
    byteLength += lengthBytes + bytes.length;
  }
  parts[0]!.writeUInt32LE(byteLength);
  return Buffer.concat(parts);
}

/** Cuts a stream of bytes into messages. */
export class FrameReader {
  readonly #largestBytes: number;
  #chunks: Buffer[] = [];
  #heldBytes = 0;

  /** `largestBytes` is what a message may have; a longer one throws before it is held. */
  constructor(largestBytes: number) {
    this.#largestBytes = largestBytes;
  }

  /** The messages that `chunk` completes, each as its fields. Throws a RangeError for what is not a message. */
  read(chunk: Buffer): Buffer[][] {
    this.#chunks.push(chunk);
    this.#heldBytes += chunk.length;
    const frames: Buffer[][] = [];
    for (let length = this.#nextLength(); length !== null; length = this.#nextLength()) {
      if (this.#heldBytes < lengthBytes + length) break;
      const all = this.#joined();
      frames.push(fieldsOf(all.subarray(lengthBytes, lengthBytes + length)));
      const rest = all.subarray(lengthBytes + length);
      this.#chunks = [rest];
      this.#heldBytes = rest.length;
    }
    return frames;
  }

  #nextLength(): number | null {
    if (this.#heldBytes < lengthBytes) return null;
    if (this.#chunks[0]!.length < lengthBytes) this.#joined();
    const length = this.#chunks[0]!.readUInt32LE();
    if (length > this.#largestBytes) throw new RangeError(`a message of ${length} bytes is too long`);
    return length;
  }

  #joined(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }
}

function fieldsOf(body: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let start = 0; start < body.length;) {
    if (start + lengthBytes > body.length) throw new RangeError('a message ends in the middle of a length');
    const end = start + lengthBytes + body.readUInt32LE(start);
    if (end > body.length) throw new RangeError('a field is longer than its message');
    fields.push(body.subarray(start + lengthBytes, end));
    start = end;
  }
  return fields;
}
