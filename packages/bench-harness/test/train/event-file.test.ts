import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EventFile, crc32c } from '../../src/train/event-file.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** A message of Protocol Buffers, as one reads it who knows the format alone: values by their fields. */
function decode(bytes: Buffer): Map<number, (number | Buffer)[]> {
  const values = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const varint = () => {
    let [value, scale] = [0, 1];
    for (;;) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * scale;
      scale *= 128;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number) => bytes.subarray(at, (at += length));
  const read = [varint, () => take(8).readDoubleLE(), () => take(varint())];
  while (at < bytes.length) {
    const key = varint();
    const value = key % 8 === 5 ? take(4).readFloatLE() : read[key % 8]!();
    values.set(key >> 3, [...(values.get(key >> 3) ?? []), value]);
  }
  return values;
}

/** The events of the one file of a folder; its checksums are those of TFRecord. */
function eventsIn(folder: string): ReturnType<typeof decode>[] {
  const [name] = readdirSync(folder).filter((each) => each.includes('tfevents'));
  const bytes = readFileSync(join(folder, name!));
  const events = [];
  const unmasked = (masked: number) => {
    const rotated = (masked - 0xa282ead8) >>> 0;
    return ((rotated >>> 17) | (rotated << 15)) >>> 0;
  };
  for (let at = 0; at < bytes.length;) {
    const length = Number(bytes.readBigUInt64LE(at));
    const data = bytes.subarray(at + 12, at + 12 + length);
    expect(unmasked(bytes.readUInt32LE(at + 8))).toBe(crc32c(bytes.subarray(at, at + 8)));
    expect(unmasked(bytes.readUInt32LE(at + 12 + length))).toBe(crc32c(data));
    events.push(decode(data));
    at += 16 + length;
  }
  return events;
}

describe('a file of events', () => {
  it('has the checksum of RFC 3720', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  });

  it('holds scalars as TensorBoard reads them', () => {
    const folder = temporaryFolder();
    {
      using file = new EventFile(folder, 300, 1_700_000_000_500);
      file.write(300, { 'loss/train': 1.5, missing: null, 'learning rate': NaN }, 1_700_000_001_000);
      file.write(70_000, { 'loss/train': -2 }, 1_700_000_002_000);
    }
    const [version, start, first, second, ...others] = eventsIn(folder);
    expect(others).toEqual([]);
    expect(String(version!.get(3)![0])).toBe('brain.Event:2');
    expect(version!.get(1)).toEqual([1_700_000_000.5]);
    expect(start!.get(2)).toEqual([300]);
    expect([...decode(start!.get(7)![0] as Buffer)]).toEqual([[1, [1]]]);
    const scalars = (event: ReturnType<typeof decode>) =>
      decode(event.get(5)![0] as Buffer)
        .get(1)!
        .map((value) => decode(value as Buffer))
        .map((value) => [String(value.get(1)![0]), value.get(2)![0]]);
    expect([first!.get(2), scalars(first!)]).toEqual([
      [300],
      [
        ['loss/train', 1.5],
        ['learning rate', NaN],
      ],
    ]);
    expect([second!.get(2), scalars(second!)]).toEqual([[70_000], [['loss/train', -2]]]);
  });
});
