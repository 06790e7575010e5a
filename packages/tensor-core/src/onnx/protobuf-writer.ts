const wireTypes = { varint: 0, lengthDelimited: 2, fixed32: 5 };

/** A length is known only after its message has been written, so four bytes, padded, are reserved for it. */
const reservedLengthBytes = 4;

/** Writes the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/). */
export class ProtobufWriter {
  #bytes = Buffer.allocUnsafe(4096);
  #position = 0;

  /** A signed or unsigned whole number. */
  integer(field: number, value: number): void {
    this.#tag(field, wireTypes.varint);
    this.#varint(value);
  }

  float(field: number, value: number): void {
    this.#tag(field, wireTypes.fixed32);
    this.#reserve(4);
    this.#position = this.#bytes.writeFloatLE(value, this.#position);
  }

  string(field: number, value: string): void {
    this.bytes(field, Buffer.from(value));
  }

  bytes(field: number, value: Uint8Array): void {
    this.#tag(field, wireTypes.lengthDelimited);
    this.#varint(value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#position);
    this.#position += value.length;
  }

  /** A nested message, whose fields `write` writes. */
  message(field: number, write: () => void): void {
    this.#tag(field, wireTypes.lengthDelimited);
    this.#reserve(reservedLengthBytes);
    const start = (this.#position += reservedLengthBytes);
    write();
    const length = this.#position - start;
    if (length >= 2 ** (7 * reservedLengthBytes)) {
      throw new RangeError(
        `protobuf: a nested message of ${length} bytes; the most is 256 MiB. Pass large constants as inputs.`,
      );
    }
    for (let i = 0; i < reservedLengthBytes; i++) {
      const more = i < reservedLengthBytes - 1 ? 0x80 : 0;
      this.#bytes[start - reservedLengthBytes + i] = ((length >>> (7 * i)) & 0x7f) | more;
    }
  }

  /** What was written. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#position);
  }

  #tag(field: number, wireType: number): void {
    this.#varint((field << 3) | wireType);
  }

  #varint(value: number): void {
    this.#reserve(10);
    if (value >= 0 && value < 2 ** 31) {
      for (; value > 0x7f; value >>>= 7) this.#bytes[this.#position++] = (value & 0x7f) | 0x80;
      this.#bytes[this.#position++] = value;
      return;
    }
    let rest = BigInt.asUintN(64, BigInt(value));
    for (; rest > 0x7fn; rest >>= 7n) this.#bytes[this.#position++] = Number(rest & 0x7fn) | 0x80;
    this.#bytes[this.#position++] = Number(rest);
  }

  #reserve(byteLength: number): void {
    const needed = this.#position + byteLength;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#position);
    this.#bytes = grown;
  }
}
