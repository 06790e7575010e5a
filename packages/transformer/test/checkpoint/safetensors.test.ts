import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { byteSize } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { SafetensorsError, SafetensorsFile, writeSafetensors } from '../../src/index.ts';
import { decodeHeaderLength } from '../../src/checkpoint/safetensors-header.ts';
import { temporaryFolder } from './temporary-folder.ts';

const path = temporaryFolder();

const source = (name: string, values: readonly number[]) => ({
  name,
  dtype: 'float32' as const,
  shape: [values.length],
  read: () => new Uint8Array(Float32Array.from(values).buffer),
});

/** A file with this header, and this many bytes of data. */
function writeRaw(name: string, header: unknown, dataBytes = 0): string {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  writeFileSync(path(name), Buffer.concat([length, json, Buffer.alloc(dataBytes)]));
  return path(name);
}

const f32 = (shape: number[], begin: number, end: number) => ({
  dtype: 'F32',
  shape,
  data_offsets: [begin, end],
});

describe('safetensors', () => {
  it('gives back what was written', () => {
    writeSafetensors(path('a'), [source('x', [1, 2, 3]), source('empty', []), source('y', [4])], {
      by: 'test',
    });
    using file = new SafetensorsFile(path('a'));
    expect([...file.tensors.keys()]).toEqual(['x', 'empty', 'y']);
    expect(file.metadata).toEqual({ by: 'test' });
    expect(new Float32Array(file.read('x').buffer)).toEqual(Float32Array.of(1, 2, 3));
    expect(file.read('empty')).toHaveLength(0);
    expect(file.tensors.get('y')).toMatchObject({ dtype: 'float32', shape: [1], byteLength: 4 });
  });

  it('starts its data at a multiple of eight bytes', () => {
    writeSafetensors(path('aligned'), [source('x', [1])]);
    const bytes = readFileSync(path('aligned'));
    expect(bytes.readBigUInt64LE() % 8n).toBe(0n);
    expect(JSON.parse(bytes.subarray(8, -4).toString())).toEqual({ x: f32([1], 0, 4) });
  });

  it('starts each tensor at a multiple of its element size, as PyTorch must have it to read a file', () => {
    const dtypes = ['bool', 'float32', 'bool', 'bfloat16', 'float64', 'float16', 'int64'] as const;
    const sources = dtypes.map((dtype, i) => ({
      ...{ name: String(i), dtype, shape: [3] },
      read: () => new Uint8Array(3 * byteSize(dtype)).fill(i),
    }));
    writeSafetensors(path('mixed'), sources);
    using file = new SafetensorsFile(path('mixed'));
    expect([...file.tensors.keys()]).toEqual(sources.map(({ name }) => name));
    for (const { name, dtype, read } of sources) {
      expect(file.tensors.get(name)!.byteOffset % byteSize(dtype)).toBe(0);
      expect(file.read(name)).toEqual(read());
    }
  });

  it('closes once, and reads nothing afterwards, not even of a file that was opened since', () => {
    writeSafetensors(path('first'), [source('x', [1])]);
    writeSafetensors(path('second'), [source('x', [2])]);
    const first = new SafetensorsFile(path('first'));
    first.close();
    using second = new SafetensorsFile(path('second'));
    expect(() => first.read('x')).toThrow(/SafetensorsFile\.read: .*first has been closed; open it anew/);
    expect(() => first.read('x')).toThrow(SafetensorsError);
    first.close();
    expect(new Float32Array(second.read('x').buffer)).toEqual(Float32Array.of(2));
  });

  it('holds one tensor at a time, and leaves nothing behind when one fails', () => {
    const failing = {
      ...source('y', [2]),
      read: () => {
        throw new Error('no more');
      },
    };
    expect(() => writeSafetensors(path('failed'), [source('x', [1]), failing])).toThrow('no more');
    expect(readdirSync(path('.')).filter((name) => name.startsWith('failed'))).toEqual([]);
  });

  it('writes apart from another that writes there meanwhile', () => {
    const outer = source('x', [1]);
    const read = () => {
      writeSafetensors(path('both'), [source('x', [2])]);
      return outer.read();
    };
    writeSafetensors(path('both'), [{ ...outer, read }]);
    using file = new SafetensorsFile(path('both'));
    expect(new Float32Array(file.read('x').buffer)).toEqual(Float32Array.of(1));
    expect(readdirSync(path('.')).filter((name) => name.startsWith('both'))).toHaveLength(1);
  });

  it('keeps the file that is there from a tensor that reads other bytes than it says', () => {
    writeSafetensors(path('kept'), [source('a', [1, 2])]);
    const before = readFileSync(path('kept'));
    const shifted = [source('a', [1, 2, 3]), source('b', [4])].map((of) => ({ ...of, shape: [2] }));
    expect(() => writeSafetensors(path('kept'), shifted)).toThrow(
      /writeSafetensors: "a" is float32 \[2\], 8 bytes in a Uint8Array, but its read\(\) gave 12 bytes/,
    );
    const numbers = { ...source('a', [1]), read: () => [0, 0, 0, 0] as never };
    expect(() => writeSafetensors(path('kept'), [numbers])).toThrow(/read\(\) gave/);
    for (const shape of [[-1], [0.5], [NaN], 'two', undefined])
      expect(() => writeSafetensors(path('kept'), [{ ...source('a', []), shape: shape as never }])).toThrow(
        /the shape of "a" must be a list of whole numbers/,
      );
    expect(readFileSync(path('kept'))).toEqual(before);
  });

  it('writes where a link leads to, with the permissions of the file there', () => {
    writeSafetensors(path('private'), [source('a', [1])]);
    chmodSync(path('private'), 0o600);
    symlinkSync('private', path('link'));
    writeSafetensors(path('link'), [source('b', [2])]);
    expect(lstatSync(path('link')).isSymbolicLink()).toBe(true);
    expect(lstatSync(path('private')).mode & 0o777).toBe(0o600);
    using file = new SafetensorsFile(path('private'));
    expect([...file.tensors.keys()]).toEqual(['b']);
  });

  it.skipIf(process.platform === 'win32')(
    'replaces neither a folder nor what is no regular file',
    async () => {
      mkdirSync(path('folder'));
      expect(() => writeSafetensors(path('folder'), [])).toThrow(/folder is a folder; name a file to write/);
      // Of its own: a device of the machine must not be at stake.
      const server = createServer().listen(path('socket'));
      try {
        await once(server, 'listening');
        expect(() => writeSafetensors(path('socket'), [])).toThrow(/socket is no regular file; name a file/);
        expect(lstatSync(path('socket')).isSocket()).toBe(true);
      } finally {
        server.close();
      }
    },
  );

  it('reads metadata of many escaped characters, such as a vocabulary', () => {
    const vocabulary = JSON.stringify(Array.from({ length: 2_000_000 }, () => 'a\\'));
    writeSafetensors(path('vocabulary'), [source('a', [1])], { vocabulary });
    using file = new SafetensorsFile(path('vocabulary'));
    expect(file.metadata.vocabulary === vocabulary).toBe(true);
    expect([...file.tensors.keys()]).toEqual(['a']);
  });

  it('holds tensors by any name', () => {
    const names = ['constructor', '__proto__', 'toString', '"', '', 'a\nb', 'Ω'];
    writeSafetensors(
      path('names'),
      names.map((name, i) => source(name, [i])),
    );
    using file = new SafetensorsFile(path('names'));
    expect([...file.tensors.keys()]).toEqual(names);
    expect(names.map((name) => new Float32Array(file.read(name).buffer)[0])).toEqual(names.map((_, i) => i));
  });

  it.each([
    [
      'a tensor, of the same bytes',
      `{"x":${JSON.stringify(f32([1], 0, 4))},"x":${JSON.stringify(f32([1], 0, 4))}}`,
      '"x"',
    ],
    [
      'a tensor, in other letters',
      `{"x":${JSON.stringify(f32([1], 0, 4))},"\\u0078":${JSON.stringify(f32([1], 0, 4))}}`,
      '"x"',
    ],
    ['the metadata', '{"__metadata__":{"a":"1"},"__metadata__":{"a":"2"}}', '"__metadata__"'],
    ['a name of the metadata', '{"__metadata__":{"a":"1","a":"2"}}', '"a"'],
    [
      'a field of a tensor',
      '{"x":{"dtype":"F64","dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
      '"dtype"',
    ],
  ])('refuses a header that holds %s twice', (_what, header, name) => {
    const file = writeRaw('duplicate', header, header.includes('F32') ? 4 : 0);
    expect(() => new SafetensorsFile(file)).toThrow(SafetensorsError);
    expect(() => new SafetensorsFile(file)).toThrow(`${name} appears twice`);
  });

  it('refuses headers that are nested without end, in few words', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    for (const header of [`{"x":${deep}}`, `{"__metadata__":${deep}}`, deep, `{"x":{"dtype":${deep}}}`]) {
      const file = writeRaw('deep', header);
      expect(() => new SafetensorsFile(file)).toThrow(SafetensorsError);
      expect(() => new SafetensorsFile(file)).toThrow(/^.{1,400}$/);
    }
  });

  it('refuses a name that is given twice', () => {
    expect(() => writeSafetensors(path('twice'), [source('x', [1]), source('x', [2])])).toThrow(
      /"x" appears twice/,
    );
  });

  it('reads beyond 4 GiB', () => {
    const bytes = 5 * 2 ** 30;
    const header = { large: f32([bytes / 4], 0, bytes), last: f32([1], bytes, bytes + 4) };
    const file = openSync(writeRaw('large', header), 'r+');
    const start = 8 + JSON.stringify(header).length;
    ftruncateSync(file, start + bytes + 4);
    writeSync(file, new Uint8Array(Float32Array.of(42).buffer), 0, 4, start + bytes);
    closeSync(file);
    using opened = new SafetensorsFile(path('large'));
    expect(new Float32Array(opened.read('last').buffer)[0]).toBe(42);
  });

  it.each<[string, unknown, number, RegExp]>([
    ['not JSON', '{"x":', 0, /not JSON/],
    ['not an object', '[1]', 0, /not an object/],
    ['metadata of another kind', { __metadata__: { a: 1 } }, 0, /must hold text/],
    ['no offsets', { x: { dtype: 'F32', shape: [1] } }, 4, /"x" needs dtype, shape and data_offsets/],
    ['a negative length', { x: f32([-1], 0, 4) }, 4, /"x" needs/],
    [
      'a dtype we lack',
      { x: { ...f32([4], 0, 4), dtype: 'F8_E4M3' } },
      4,
      /"x" is F8_E4M3; readable are F32/,
    ],
    ['another size', { x: f32([2], 0, 4) }, 4, /8 bytes, but its offsets span 4/],
    ['a gap', { x: f32([1], 0, 4), y: f32([1], 8, 12) }, 12, /"y" starts at byte .* ends at/],
    ['an overlap', { x: f32([2], 0, 8), y: f32([1], 4, 8) }, 8, /"y" starts/],
    ['too little data', { x: f32([2], 0, 8) }, 4, /cut off or overlong/],
    ['too much data', { x: f32([2], 0, 8) }, 12, /cut off or overlong/],
  ])('refuses a file with %s', (name, header, dataBytes, message) => {
    const file = writeRaw(name.replaceAll(' ', '-'), header, dataBytes);
    expect(() => new SafetensorsFile(file)).toThrow(message);
    expect(() => new SafetensorsFile(file)).toThrow(SafetensorsError);
  });

  it('takes a header that ends where the file does, and refuses one that would end a byte later', () => {
    const header = '{"__metadata__":{"by":"test"}}';
    const file = writeRaw('whole', header);
    using whole = new SafetensorsFile(file);
    expect(whole.metadata).toEqual({ by: 'test' });
    const bytes = readFileSync(file);
    for (let missing = 1; missing <= 9; missing++) {
      writeFileSync(path('cut'), bytes.subarray(0, -missing));
      expect(() => new SafetensorsFile(path('cut'))).toThrow(
        `is cut off: its header would take ${header.length} bytes, the file has ${bytes.length - missing}.`,
      );
    }
  });

  it.each([
    [100_000_000, 100_000_008, true],
    [100_000_000, 100_000_007, false],
    [100_000_001, 200_000_000, false],
  ])('a header of %i bytes in a file of %i may be: %s', (length, fileBytes, isTaken) => {
    const first = Buffer.alloc(8);
    first.writeBigUInt64LE(BigInt(length));
    const decode = () => decodeHeaderLength('x', first, fileBytes);
    if (isTaken) expect(decode()).toBe(length);
    else expect(decode).toThrow(SafetensorsError);
  });

  it('refuses what is not a safetensors file at all', () => {
    writeFileSync(path('short'), 'abc');
    writeFileSync(path('text'), 'This is a letter, not a file of tensors.');
    expect(() => new SafetensorsFile(path('short'))).toThrow(/has 3 bytes\. Fetch or write it anew/);
    expect(() => new SafetensorsFile(path('text'))).toThrow(/no safetensors file, or is cut off/);
    expect(() => new SafetensorsFile(path('absent'))).toThrow(/ENOENT/);
    expect(() => new SafetensorsFile(path('.'))).toThrow(/ is a folder, not a safetensors file/);
    expect(() => new SafetensorsFile(path('.'))).toThrow(SafetensorsError);
  });
});
