import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { TokenFile } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { endOf, startCli } from '../fixtures/run-cli.ts';
import { runMain } from '../fixtures/run-main.ts';
import { openTokenizer } from '../../src/tokenize/open-tokenizer.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { byteLevel, patterns } from '../tokenize/small-tokenizers.ts';

/** A folder with two texts; gives paths in it. */
function texts(): (name: string) => string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'a.txt'), 'The roof ä');
  writeFileSync(join(folder, 'b.txt'), 'and the floor');
  return (name) => join(folder, name);
}

function textIn(path: string): string {
  using file = new TokenFile(path);
  return Buffer.from([...file.read(0, file.length)]).toString();
}

/** Some that come again, and some that do not. */
function manyWords(seed: number, bytes: number): string {
  let state = seed;
  const random = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 8;
  const words = Array.from({ length: bytes / 10 }, () =>
    random() % 3 === 0 ? 'roof größe\n' : (random() * random()).toString(36),
  );
  return words.join(' ');
}

describe('roofline tokenize', () => {
  it('makes one file of several texts, in their order', async () => {
    const at = texts();
    const both = await runMain(['tokenize', at('b.txt'), at('a.txt'), '--out', at('data.bin')]);
    expect(both).toEqual({
      exitCode: 0,
      stdout: `${at('data.bin')}: 24 tokens of a vocabulary of 256, as uint16\n`,
      stderr: '',
    });
    expect(textIn(at('data.bin'))).toBe('and the floorThe roof ä');
    const again = await runMain(['tokenize', at('a.txt'), '--out', at('data.bin'), '--json']);
    expect(JSON.parse(again.stdout)).toEqual({
      ...{ path: at('data.bin'), texts: [at('a.txt')], tokenizer: 'bytes' },
      ...{ tokens: 11, vocabularySize: 256, dtype: 'uint16' },
    });
    expect(textIn(at('data.bin'))).toBe('The roof ä');
    expect(readdirSync(at('.')).sort()).toEqual(['a.txt', 'b.txt', 'data.bin']);
  });

  it("writes a tokenizer's tokens, with one between texts, and says whose they are", async () => {
    const at = texts();
    const json = byteLevel(patterns.gpt2) as { added_tokens: object[] };
    json.added_tokens.push({ id: 70_000, content: '<|last|>', special: true });
    mkdirSync(at('model'));
    writeFileSync(at('model/tokenizer.json'), JSON.stringify(json));
    const words = ['tokenize', at('a.txt'), at('b.txt'), '--tokenizer', at('model'), '--out', at('data.bin')];
    expect(await runMain([...words, '--end-of-text', 'eos'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/no eos_token in a tokenizer_config.json .* name the token/s),
    });
    expect((await runMain([...words, '--end-of-text', '<none>'])).stderr).toContain("has no token '<none>'");
    expect(await runMain([...words, '--end-of-text', '<|last|>'])).toMatchObject({ exitCode: 0, stderr: '' });
    using file = new TokenFile(at('data.bin'));
    const { metadata, dtype, vocabularySize } = file;
    expect({ dtype, vocabularySize }).toEqual({ dtype: 'uint32', vocabularySize: 70_001 });
    expect(metadata).toMatchObject({ tokenizer: at('model/tokenizer.json'), endOfText: '<|last|>' });
    const { encode } = openTokenizer(metadata['tokenizer']!);
    const [a, b] = [encode('The roof ä'), encode('and the floor')];
    expect([...file.read(0, file.length)]).toEqual([...a, 70_000, ...b, 70_000]);
  });

  it('takes texts of many pieces, with empty ones among them', async () => {
    const at = texts();
    const bytes = Buffer.alloc(9_000_000, 'all the bytes of a longer text, ');
    writeFileSync(at('long.txt'), bytes);
    writeFileSync(at('empty.txt'), '');
    const files = ['empty.txt', 'long.txt', 'a.txt'].map(at);
    expect((await runMain(['tokenize', ...files, '--out', at('data.bin')])).exitCode).toBe(0);
    using file = new TokenFile(at('data.bin'));
    expect(Buffer.from(file.read(0, bytes.length)).equals(bytes)).toBe(true);
    expect(file.length).toBe(bytes.length + 11);
  });

  it.each<[words: string[], message: string]>([
    [['a.txt'], '--out is needed.'],
    [['--out', 'data.bin'], '`roofline tokenize` wants <texts..>.'],
    [
      ['a.txt', '--out', 'data.bin', '--tokenizer', 'byte'],
      "byte does not exist; it is 'bytes', a folder, a tokenizer.json",
    ],
    [['a.txt', 'c.txt', '--out', 'data.bin'], 'c.txt does not exist.'],
    [['.', '--out', 'data.bin'], ' is no regular file; name the texts one by one.'],
    [['good.bin', '--out', 'data.bin'], 'good.bin is a file of tokens, not a text.'],
    [['empty.txt', '--out', 'good.bin'], 'empty.txt: there is no byte in it, and so no token.'],
    [['a.txt', '--out', 'a.txt'], 'a.txt is one of the texts, and would take its place'],
    [['a.txt', '--out', 'link.txt'], 'link.txt is one of the texts'],
    [
      ['a.txt', '--out', 'b.txt'],
      'b.txt is there and is no file of tokens: remove it, or name another file.',
    ],
    [['a.txt', '--out', 'folder'], 'folder is no regular file: name a file to write.'],
    [['a.txt', '--out', 'nowhere/data.bin'], 'data.bin is in a folder that does not exist'],
  ])('%j is wrong usage, and changes no file', async (words, message) => {
    const at = texts();
    writeFileSync(at('empty.txt'), '');
    mkdirSync(at('folder'));
    symlinkSync('a.txt', at('link.txt'));
    await runMain(['tokenize', at('b.txt'), '--out', at('good.bin')]);
    const before = readdirSync(at('.'));
    const inFolder = words.map((word) => (word.startsWith('--') || word === 'byte' ? word : at(word)));
    const { exitCode, stdout, stderr } = await runMain(['tokenize', ...inFolder]);
    expect(stderr.replaceAll('\n', ' ')).toContain(message);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(readdirSync(at('.'))).toEqual(before);
    expect(readFileSync(at('a.txt'), 'utf8')).toBe('The roof ä');
    expect(readFileSync(at('b.txt'), 'utf8')).toBe('and the floor');
    expect(textIn(at('good.bin'))).toBe('and the floor');
  });

  it.skipIf(process.getuid?.() === 0)('names a text that may not be read', async () => {
    const at = texts();
    chmodSync(at('a.txt'), 0);
    const { exitCode, stderr } = await runMain(['tokenize', at('a.txt'), '--out', at('data.bin')]);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining('cannot be opened: EACCES'),
    });
  });

  it.skipIf(process.platform === 'win32')(
    'that is killed leaves the file before, and begins anew with a word about it',
    async () => {
      const at = texts();
      await runMain(['tokenize', at('b.txt'), '--out', at('data.bin')]);
      writeFileSync(at('large.txt'), '');
      truncateSync(at('large.txt'), 4e9);
      const child = startCli(['tokenize', at('large.txt'), '--out', at('data.bin')]);
      const ended = once(child, 'exit');
      const partial = () => readdirSync(at('.')).some((name) => name.endsWith('.partial'));
      while (!partial()) await setTimeout(5);
      child.kill('SIGKILL');
      expect(await ended).toEqual([null, 'SIGKILL']);
      expect(textIn(at('data.bin'))).toBe('and the floor');
      expect(partial()).toBe(true);
      const again = await endOf(startCli(['tokenize', at('a.txt'), '--out', at('data.bin')]));
      expect(again).toMatchObject({
        exitCode: 0,
        stderr: expect.stringMatching(/^A run before was interrupted, .*data.bin is begun anew\.\n$/s),
      });
      expect(textIn(at('data.bin'))).toBe('The roof ä');
      expect(partial()).toBe(false);
    },
  );

  it.skipIf(process.platform === 'win32').each([1, 2])(
    'that is killed at any moment goes on from there, on %i threads',
    async (threads) => {
      const at = texts();
      mkdirSync(at('model'));
      writeFileSync(at('model/tokenizer.json'), JSON.stringify(byteLevel(patterns.gpt2)));
      writeFileSync(at('empty.txt'), '');
      writeFileSync(at('one.txt'), manyWords(1, threads * 4e6));
      writeFileSync(at('two.txt'), manyWords(2, threads * 5e6));
      const files = ['one.txt', 'empty.txt', 'two.txt', 'empty.txt', 'a.txt'].map(at);
      const words = ['tokenize', ...files, '--tokenizer', at('model'), '--end-of-text', '<|endoftext|>'];
      const start = (out: string) =>
        startCli([...words, '--out', at(out)], { ROOFLINE_CPU_THREADS: String(threads) });
      expect(await endOf(start('whole.bin'))).toMatchObject({ exitCode: 0, stderr: '' });
      const partial = () => readdirSync(at('.')).find((name) => name.endsWith('.partial'));
      // What has been saved stands at the beginning.
      const saved = () =>
        partial() === undefined ? '' : readFileSync(at(partial()!)).toString('hex', 0, 64);
      let [wentOn, isDone] = [0, false];
      for (let kills = 0; !isDone; kills++) {
        let seen = saved();
        const child = start('data.bin');
        const end = endOf(child);
        const atAnyMoment = kills % 2 === 1;
        if (atAnyMoment) await setTimeout(1000 + 300 * kills);
        // What a run saves first is that it has come to nowhere yet.
        for (let saves = atAnyMoment ? 2 : 0; saves < 2 && child.exitCode === null; await setTimeout(5)) {
          if (saved() === seen) continue;
          seen = saved();
          saves++;
        }
        if (kills < 4) await setTimeout((kills * 197) % 300);
        if (kills < 4) child.kill('SIGKILL');
        const { exitCode, stderr } = await end;
        const [, bytes] = /is gone on with\s+after\s+([\d,]+)\s+bytes/.exec(stderr) ?? [];
        if (bytes !== undefined && Number(bytes.replaceAll(',', '')) > 0) wentOn++;
        isDone = exitCode === 0;
      }
      expect(wentOn).toBeGreaterThan(0);
      expect(readFileSync(at('data.bin')).equals(readFileSync(at('whole.bin')))).toBe(true);
      expect(partial()).toBe(undefined);
    },
  );

  it.skipIf(process.platform !== 'linux')(
    'that finds no room says so, and leaves the file before',
    async () => {
      const at = texts();
      await runMain(['tokenize', at('b.txt'), '--out', at('data.bin')]);
      writeFileSync(at('large.txt'), Buffer.alloc(3e6, 'x'));
      const words = ['tokenize', at('large.txt'), '--out', at('data.bin')];
      const { exitCode, stderr } = await endOf(
        startCli(words, {}, ['sh', '-c', 'ulimit -f 1000; exec "$@"', 'sh']),
      );
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringMatching(/^roofline: EFBIG.*Make room, or choose another folder by --out/s),
      });
      expect(textIn(at('data.bin'))).toBe('and the floor');
      expect(readdirSync(at('.')).filter((name) => name.endsWith('.partial'))).toEqual([]);
    },
  );
});
