import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { describe, expect, it } from 'vitest';
import { TokenFile, TokenFileError, TokenFileWriter, isTokenFile, writeTokens } from '../../src/index.ts';
import { temporaryFolder } from '../checkpoint/temporary-folder.ts';

const path = temporaryFolder();
let files = 0;
const newPath = () => path(`${files++}.bin`);

/** A file of these tokens. */
function fileOf(tokens: readonly number[], vocabularySize = 256): string {
  const target = newPath();
  writeTokens(target, [tokens], { vocabularySize });
  return target;
}

/** Opens a file, and reads its first token. */
function readFirst(target: string): void {
  using file = new TokenFile(target);
  file.read(0, 1);
}

/** Changes bytes of a file in place. */
function patch(target: string, offset: number, bytes: readonly number[]): void {
  const content = readFileSync(target);
  content.set(bytes, offset);
  writeFileSync(target, content);
}

describe('a file of tokens', () => {
  it.each([
    [1, 'uint16', 2],
    [2 ** 16, 'uint16', 2],
    [2 ** 16 + 1, 'uint32', 4],
    [2 ** 31, 'uint32', 4],
  ])('of a vocabulary of %i holds %s, in little-endian order', (vocabularySize, dtype, width) => {
    const tokens = [0, vocabularySize - 1, 0];
    const target = fileOf(tokens, vocabularySize);
    using file = new TokenFile(target);
    expect(file).toMatchObject({ dtype, vocabularySize, length: 3 });
    expect([...file.read(0, 3)]).toEqual(tokens);
    expect([...file.read(1, 1)]).toEqual([vocabularySize - 1]);
    const bytes = readFileSync(target).subarray(64);
    expect(tokens.map((_, i) => bytes.readUIntLE(i * width, width))).toEqual(tokens);
    expect(bytes).toHaveLength(3 * width);
  });

  it('has the same bytes in whatever chunks it came', () => {
    const tokens = Array.from({ length: 1000 }, (_, i) => (i * 7) % 256);
    const [whole, parts] = [newPath(), newPath()];
    const header = writeTokens(whole, [tokens], { vocabularySize: 256 });
    const chunks = [tokens.slice(0, 1), [], Uint16Array.from(tokens.slice(1, 400)), tokens.slice(400)];
    expect(writeTokens(parts, chunks, { vocabularySize: 256 })).toEqual(header);
    expect(readFileSync(parts)).toEqual(readFileSync(whole));
  });

  it('is told from another by its fingerprint', () => {
    const fingerprint = (tokens: number[], vocabularySize?: number) => {
      using file = new TokenFile(fileOf(tokens, vocabularySize));
      return file.fingerprint;
    };
    const all = [fingerprint([1, 2]), fingerprint([2, 1]), fingerprint([1, 2, 0]), fingerprint([1, 2], 300)];
    expect(new Set(all).size).toBe(4);
    expect(fingerprint([1, 2])).toBe(all[0]);
  });

  it('says of its tokens what its writer did', () => {
    const target = newPath();
    const metadata = { tokenizer: '/models/größe/tokenizer.json' };
    writeTokens(target, [[1, 2, 3]], { vocabularySize: 70_000, metadata });
    using file = new TokenFile(target);
    expect(file).toMatchObject({ metadata, length: 3, vocabularySize: 70_000 });
    expect([...file.read(0, 3)]).toEqual([1, 2, 3]);
    using silent = new TokenFile(fileOf([1]));
    expect(silent.metadata).toEqual({});
    patch(target, readFileSync(target).length - 9, [0]);
    expect(() => new TokenFile(target)).toThrow('what it says of its tokens is damaged. Write it anew');
  });

  it('refuses places beyond its end, and to be read once it is closed', () => {
    const file = new TokenFile(fileOf([1, 2, 3]));
    expect(() => file.read(2, 2)).toThrow('tokens 2 to 4 lie beyond the 3 of');
    expect([...file.read(3, 0)]).toEqual([]);
    file.close();
    file.close();
    expect(() => file.read(0, 1)).toThrow('has been closed; open it anew');
  });
});

describe('no file of tokens', () => {
  it.each<[what: string, spoil: (target: string) => void, message: RegExp]>([
    ['an empty file', (target) => truncateSync(target, 0), /is no file of tokens\. .*roofline tokenize/],
    ['a text', (target) => writeFileSync(target, 'text '.repeat(100)), /is no file of tokens/],
    ['a part of its magic', (target) => truncateSync(target, 7), /is no file of tokens/],
    [
      'a torn header',
      (target) => truncateSync(target, 63),
      /is cut off: it has 63 bytes of 64\. Write it anew/,
    ],
    ['a header alone', (target) => truncateSync(target, 64), /is cut off: it has 64 bytes of 70/],
    ['half a token less', (target) => truncateSync(target, 69), /is cut off: it has 69 bytes of 70/],
    ['more bytes', (target) => appendFileSync(target, 'x'), /has 71 bytes, more than the 70 of its 3 tokens/],
    ['another size in its header', (target) => patch(target, 24, [2]), /its header is damaged/],
    ['another checksum of its header', (target) => patch(target, 36, [0, 0, 0, 0]), /its header is damaged/],
    [
      'zeros, as before its header is written',
      (target) => writeFileSync(target, Buffer.alloc(70)),
      /is no file/,
    ],
    [
      'a token beyond the vocabulary',
      (target) => patch(target, 64, [0, 1]),
      /token 0 is 256, beyond its vocabulary/,
    ],
  ])('is %s', (_, spoil, message) => {
    const target = fileOf([1, 2, 3]);
    spoil(target);
    expect(() => readFirst(target)).toThrow(TokenFileError);
    expect(() => readFirst(target)).toThrow(message);
    expect(() => readFirst(target)).toThrow(target);
  });

  it('is a folder, or what is not there', () => {
    mkdirSync(path('folder'));
    expect(() => readFirst(path('folder'))).toThrow(/folder is no regular file; name a file of tokens/);
    expect(() => readFirst(path('nowhere'))).toThrow(/nowhere cannot be opened: ENOENT/);
  });

  it('is told by its first bytes', () => {
    const target = fileOf([1]);
    expect(isTokenFile(target)).toBe(true);
    truncateSync(target, 10);
    expect(isTokenFile(target)).toBe(true);
    writeFileSync(target, 'RTOKEN');
    expect(isTokenFile(target)).toBe(false);
  });
});

describe('a file of tokens that is changed while it is open', () => {
  it.each<[what: string, change: (target: string) => void]>([
    ['cut off', (target) => truncateSync(target, 66)],
    ['made longer', (target) => appendFileSync(target, 'more')],
    [
      'written to in place',
      (target) => {
        patch(target, 64, [7]);
        utimesSync(target, 1, 1);
      },
    ],
  ])('is an error: %s', (_, change) => {
    const target = fileOf([1, 2, 3]);
    using file = new TokenFile(target);
    change(target);
    expect(() => file.read(0, 3)).toThrow(`${target} was changed while it was read`);
  });

  it('is read to its end where another took its name', () => {
    const target = fileOf([1, 2, 3]);
    using file = new TokenFile(target);
    renameSync(fileOf([4, 5]), target);
    expect([...file.read(0, 3)]).toEqual([1, 2, 3]);
  });
});

describe('writeTokens', () => {
  it.each<[what: string, chunks: Iterable<ArrayLike<number>>, message: string]>([
    ['a token beyond the vocabulary', [[1], [2, 256]], 'token 2 is 256, not one of 0 to 255'],
    ['a token below zero', [[-1]], 'not one of 0 to 255'],
    ['a part of a token', [[0.5]], 'not one of 0 to 255'],
    ['what is no number', [[NaN]], 'not one of 0 to 255'],
    [
      'bytes that are no list',
      [[1], new DataView(new ArrayBuffer(4)) as never],
      'tokens must be a list or typed array, not',
    ],
    ['no token', [[], []], 'there is no token to write'],
  ])('refuses %s, and leaves the file before', (_, chunks, message) => {
    const target = fileOf([1, 2]);
    const before = readFileSync(target);
    expect(() => writeTokens(target, chunks, { vocabularySize: 256 })).toThrow(message);
    expect(readFileSync(target)).toEqual(before);
    expect(readdirSync(path('.')).filter((name) => name.endsWith('.partial'))).toEqual([]);
  });

  it('leaves the file before where the tokens end with an error', () => {
    const target = fileOf([1, 2]);
    function* tokens() {
      yield [3];
      throw new Error('the tokenizer failed');
    }
    expect(() => writeTokens(target, tokens(), { vocabularySize: 256 })).toThrow('the tokenizer failed');
    readFirst(target);
  });

  it('refuses a folder', () => {
    expect(() => writeTokens(path('.'), [[1]], { vocabularySize: 2 })).toThrow(
      /^TokenFileWriter: .* is a folder/,
    );
  });
});

/** A process that has written tokens without end, and is about to write more. */
async function writingTo(target: string): Promise<ChildProcess> {
  const module = resolve(import.meta.dirname, '../../src/data/write-tokens.ts');
  const program = `
    import { writeSync } from 'node:fs';
    import { writeTokens } from ${JSON.stringify(module)};
    function* tokens() {
      for (let chunk = 0; ; chunk++) {
        yield new Uint16Array(1000);
        if (chunk === 3) writeSync(1, 'begun');
      }
    }
    writeTokens(${JSON.stringify(target)}, tokens(), { vocabularySize: 256 });`;
  const flags = [
    '--conditions=roofline-source',
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
  ];
  const child = spawn(process.execPath, [...flags, '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout!, 'data');
  return child;
}

describe.skipIf(process.platform === 'win32')('a writer that is killed', () => {
  it.each(['no file', 'a file'])(
    'leaves %s where there was one, and the next begins anew and says so',
    async (before) => {
      const folder = path(before.replace(' ', '-'));
      mkdirSync(folder);
      const target = `${folder}/data.bin`;
      if (before === 'a file') writeTokens(target, [[1, 2]], { vocabularySize: 256 });
      const child = await writingTo(target);
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      const [partial] = readdirSync(folder).filter((name) => name.endsWith('.partial'));
      expect(() => readFirst(`${folder}/${partial}`)).toThrow('is no file of tokens');
      if (before === 'a file') readFirst(target);
      else expect(readdirSync(folder)).toEqual([partial]);
      for (const leftovers of ['removed', 'none']) {
        using writer = new TokenFileWriter(target, { vocabularySize: 256 });
        expect(writer).toMatchObject({ leftovers, place: 0 });
        writer.append([3]);
        writer.finish();
      }
      expect(readdirSync(folder)).toEqual(['data.bin']);
    },
  );
});

describe.skipIf(process.platform === 'win32')('what a killed writer has left', () => {
  const options = { vocabularySize: 70_000, metadata: { tokenizer: 'a' }, job: 'all texts' };
  const length = 5000;
  const tokens = Array.from({ length }, (_, i) => (i * 7919) % 70_000);

  /** Its bytes, saved at some place, with tokens after that which are not. */
  async function left(): Promise<Buffer> {
    const folder = path(`left-${files++}`);
    mkdirSync(folder);
    using writer = new TokenFileWriter(`${folder}/data.bin`, options);
    for (let place = 0; place < 4000; place += 1000) {
      writer.append(tokens.slice(place, place + 1000));
      await setTimeout(place === 2000 ? 150 : 0);
      writer.save(place + 1000);
    }
    return readFileSync(`${folder}/${readdirSync(folder)[0]}`);
  }

  /** Writes all tokens from where a writer begins in a folder with these bytes left; gives that place, and the file's bytes. */
  function goOn(bytes: Uint8Array, changed: object = {}) {
    const folder = path(`gone-on-${files++}`);
    mkdirSync(folder);
    writeFileSync(`${folder}/data.bin.0123456789abcdef.partial`, bytes);
    using writer = new TokenFileWriter(`${folder}/data.bin`, { ...options, ...changed });
    const { place, leftovers } = writer;
    writer.append(tokens.slice(place));
    writer.finish();
    expect(readdirSync(folder)).toEqual(['data.bin']);
    return { place, leftovers, bytes: readFileSync(`${folder}/data.bin`) };
  }

  it('is gone on with from the last place that was saved, whatever came after it', async () => {
    const bytes = await left();
    const whole = goOn(Buffer.alloc(0));
    expect(whole).toMatchObject({ place: 0, leftovers: 'removed' });
    const end = 64 + 3000 * 4;
    for (const torn of [bytes, bytes.subarray(0, -1), bytes.subarray(0, end), Buffer.concat([bytes, bytes])])
      expect(goOn(torn)).toEqual({ place: 3000, leftovers: 'adopted', bytes: whole.bytes });
  });

  it.each<[what: string, change: (bytes: Buffer) => void | Buffer, options?: object]>([
    ['another job', () => {}, { job: 'other texts' }],
    ['no job', () => {}, { job: undefined }],
    ['another vocabulary', () => {}, { vocabularySize: 70_001 }],
    ['other metadata', () => {}, { metadata: { tokenizer: 'b' } }],
    ['another token', (bytes) => void (bytes[70]! ^= 1)],
    ['less than was saved', (bytes) => bytes.subarray(0, 64 + 3000 * 4 - 1)],
    ['another place', (bytes) => void (bytes[32]! ^= 1)],
    ['a part of what tells of it', (bytes) => bytes.subarray(0, 63)],
    ['zeros', (bytes) => void bytes.fill(0)],
  ])('is begun anew where there is %s', async (_, change, changed) => {
    const bytes = await left();
    const spoilt = change(bytes) ?? bytes;
    const anew = goOn(spoilt, changed);
    expect(anew).toMatchObject({ place: 0, leftovers: 'removed' });
    expect(anew.bytes).toEqual(goOn(Buffer.alloc(0), changed).bytes);
  });

  it('has no place without a job', () => {
    using writer = new TokenFileWriter(newPath(), { vocabularySize: 3 });
    expect(() => writer.save(1)).toThrow('a place is saved for a job');
  });
});
