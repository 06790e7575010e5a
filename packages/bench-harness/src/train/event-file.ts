import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A file of scalars that TensorBoard shows: records of TFRecord (length, its checksum, data, its checksum), each an `Event` of
 * tensorflow/core/util/event.proto. There is no kept library for Node.js that writes them without TensorFlow.
 */
export class EventFile implements Disposable {
  readonly #file: number;

  /** A new file in `folder`. Scalars that other files of the folder have at `step` or later are of a training that was taken up again. */
  constructor(folder: string, step: number, nowMs: number = Date.now()) {
    const seconds = String(Math.floor(nowMs / 1000)).padStart(10, '0');
    const name = `events.out.tfevents.${seconds}.${process.pid}`;
    this.#file = openSync(join(folder, name), 'a');
    this.#write(concat([timeField(nowMs), textField(fields.fileVersion, 'brain.Event:2')]));
    const start = concat([varintField(fields.status, sessionStart)]);
    this.#write(
      concat([timeField(nowMs), varintField(fields.step, step), bytesField(fields.sessionLog, start)]),
    );
  }

  /** The values of a step, by their tags; those that are null are left out. */
  write(step: number, scalars: Readonly<Record<string, number | null>>, nowMs: number = Date.now()): void {
    const values = Object.entries(scalars).flatMap(([tag, value]) =>
      value === null
        ? []
        : [
            bytesField(
              fields.value,
              concat([textField(fields.tag, tag), floatField(fields.simpleValue, value)]),
            ),
          ],
    );
    const summary = bytesField(fields.summary, concat(values));
    this.#write(concat([timeField(nowMs), varintField(fields.step, step), summary]));
  }

  #write(event: Uint8Array): void {
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, BigInt(event.length), true);
    writeSync(this.#file, concat([length, checksum(length), event, checksum(event)]));
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

/** Numbers of fields: of Event, of Summary, of Summary.Value and of SessionLog. */
const fields = {
  ...{ wallTime: 1, step: 2, fileVersion: 3, summary: 5, sessionLog: 7 },
  ...{ value: 1, tag: 1, simpleValue: 2, status: 1 },
} as const;
const sessionStart = 1;
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

function timeField(nowMs: number): Uint8Array {
  const bytes = new Uint8Array(9);
  bytes[0] = (fields.wallTime << 3) | wire.fixed64;
  new DataView(bytes.buffer).setFloat64(1, nowMs / 1000, true);
  return bytes;
}

function floatField(field: number, value: number): Uint8Array {
  const bytes = new Uint8Array(5);
  bytes[0] = (field << 3) | wire.fixed32;
  new DataView(bytes.buffer).setFloat32(1, value, true);
  return bytes;
}

function varintField(field: number, value: number): Uint8Array {
  return Uint8Array.of((field << 3) | wire.varint, ...varint(value));
}

function textField(field: number, text: string): Uint8Array {
  return bytesField(field, new TextEncoder().encode(text));
}

function bytesField(field: number, bytes: Uint8Array): Uint8Array {
  return concat([Uint8Array.of((field << 3) | wire.bytes, ...varint(bytes.length)), bytes]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** The masked CRC-32C of a record. */
function checksum(bytes: Uint8Array): Uint8Array {
  const crc = crc32c(bytes);
  const masked = (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
  const encoded = new Uint8Array(4);
  new DataView(encoded.buffer).setUint32(0, masked, true);
  return encoded;
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/** CRC-32 of Castagnoli's polynomial; zlib has another one. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ table[(crc ^ byte) & 0xff]!;
  return ~crc >>> 0;
}
