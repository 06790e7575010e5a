import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer as Library } from '@huggingface/tokenizers';
import { describe, expect, it } from 'vitest';
import { openTokenizer } from '../../src/tokenize/open-tokenizer.ts';
import type { Tokenizer } from '../../src/tokenize/tokenizers.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { byteLevel, patterns, sentencePiece } from './small-tokenizers.ts';

const split = (pattern: string) => ({
  ...{ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false },
});
const byteLevelSplit = (use_regex: boolean) => ({
  ...{ type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex },
});
type Json = ReturnType<typeof byteLevel>;
/** That of GPT-4 with something else about it. */
const changed = (change: object, model: object = {}): object => {
  const json = byteLevel(patterns.gpt4) as { model: object };
  return { ...json, ...change, model: { ...json.model, ...model } };
};
/** A word of the vocabulary that its merges do not make. */
const unmergeable = { ...(byteLevel(patterns.gpt4) as { model: { vocab: object } }).model.vocab, Ġword: 590 };

/** Tokenizers, and whether words and merges are all that there is to them. */
const kinds: Readonly<Record<string, readonly [json: Json, byPlan: boolean]>> = {
  'as GPT-2': [byteLevel(patterns.gpt2), true],
  'as GPT-4': [byteLevel(patterns.gpt4), true],
  'as Qwen, normalized': [byteLevel(patterns.gpt4, { normalizer: { type: 'NFC' } }), true],
  'as Llama 3, which takes whole words from its vocabulary': [
    changed({}, { ignore_merges: true, vocab: unmergeable }),
    true,
  ],
  'whose bytes have a pattern of their own': [changed({ pre_tokenizer: byteLevelSplit(true) }), true],
  'as DeepSeek, whose splits are split again': [
    changed({
      pre_tokenizer: {
        type: 'Sequence',
        pretokenizers: [split(String.raw`\p{N}{1,3}`), split('[一-龥]+'), byteLevelSplit(true)],
      },
    }),
    true,
  ],
  'as StarCoder, digit by digit': [
    changed({
      pre_tokenizer: {
        type: 'Sequence',
        pretokenizers: [{ type: 'Digits', individual_digits: true }, byteLevelSplit(true)],
      },
    }),
    true,
  ],
  'whose tokens are looked for in the text, one in another': [
    changed({
      added_tokens: ['<|endoftext|>', '<', 'roof', 'roof (', '\n\n', '[1'].map((content, i) => ({
        ...{ id: 600 + i, content, special: i === 0, normalized: true },
      })),
    }),
    true,
  ],
  'with marks that become others': [
    changed({
      normalizer: { type: 'NFC' },
      added_tokens: [{ id: 600, content: 'K', special: true, normalized: false }],
    }),
    true,
  ],
  'that puts a space in front': [
    changed({ pre_tokenizer: { ...byteLevelSplit(true), add_prefix_space: true } }),
    false,
  ],
  'whose tokens take blanks along': [
    changed({ added_tokens: [{ id: 600, content: '<|endoftext|>', special: true, lstrip: true }] }),
    false,
  ],
  'that drops what it splits by': [
    changed({
      pre_tokenizer: {
        type: 'Sequence',
        pretokenizers: [{ ...split('~'), behavior: 'Removed' }, byteLevelSplit(true)],
      },
    }),
    false,
  ],
  'as Llama 2': [sentencePiece(), false],
};

function opened(json: object, config: object = {}): Tokenizer {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(json));
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
  return openTokenizer(folder);
}

/** Where pieces may end badly: blanks that look ahead, marks, pairs, what stands for a space, special tokens. */
const bits = [
  ...[' ', '  ', '\n', '\n\n', '\r\n', '\t', ' \n ', '\u00a0', '\u3000', '\ufeff', '\u0085', "'", "'s", '’t'],
  ...[
    '.',
    '...',
    '(',
    '"',
    '!?',
    '/',
    '_',
    '<',
    '|>',
    '</s>',
    '<|endoftext|>',
    '[',
    '1',
    '1234567',
    '½',
    'word',
  ],
  ...[
    'The',
    'é',
    'e\u0301',
    '\u0301',
    'ß',
    '日本',
    '中文字。',
    '한국',
    '\u1100\u1161\u11a8',
    'हिन्दी',
    '👍',
    '👩‍👩‍👧',
  ],
  ...['~', '\u212a', '\u2126', "DON'T", 'words', 'worder', 'a\u030a', '\u0f73'],
  ...['🇩🇪', '\u0001', '▁', 'Ġ', 'a b', ' roof', 'foo.bar', '});\n', 'x', ' '.repeat(300), '\n'.repeat(40)],
];

function hostileText(seed: number, length: number): string {
  let state = seed;
  const random = () => (state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
  return Array.from({ length }, () => bits[random() % bits.length]! + (random() % 3 === 0 ? ' ' : '')).join(
    '',
  );
}

function* piecesOf(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

function chunksOf(tokenizer: Tokenizer, pieces: Iterable<Uint8Array>): number[][] {
  return [...tokenizer.chunksOf(pieces, 'a.txt', true)].map((chunk) => [
    ...Array.from(tokenizer.tokensOf(chunk)),
  ]);
}
const tokensOf = (tokenizer: Tokenizer, pieces: Iterable<Uint8Array>) => chunksOf(tokenizer, pieces).flat();

describe.each(Object.entries(kinds))('a tokenizer %s', (_, [json, byPlan]) => {
  const library = new Library(json, {}) as { encode(text: string, options: object): { ids: number[] } };
  const whole = (text: string) => library.encode(text, { add_special_tokens: false }).ids;

  it(`is ${byPlan ? '' : 'not '}of words and merges alone`, () => {
    expect(opened(json).plan !== null).toBe(byPlan);
  });

  it.each([1, 7, 1000])('gives the tokens of the whole text, in pieces of %i bytes', (size) => {
    const tokenizer = opened(json);
    for (const [seed, length] of [
      [1, 400],
      [2, 400],
      [3, 30],
    ] as const) {
      const text = hostileText(seed, length);
      expect(tokensOf(tokenizer, piecesOf(Buffer.from(text), size))).toEqual(whole(text));
    }
  });

  it('gives tokens as it reads, not at the end', () => {
    const bytes = Buffer.from('the roof of the floor is one. '.repeat(20));
    const chunks = chunksOf(opened(json), piecesOf(bytes, 100));
    expect(chunks.length).toBeGreaterThan(3);
    expect(chunks.flat()).toEqual(whole(bytes.toString()));
  });

  it('gives the text again as tokens come, characters of several of them whole', () => {
    const tokenizer = opened(json);
    const text = 'The roof 👩‍👩‍👧 größe 日本語,\n  what   the';
    const [before, ...after] = tokenizer.encode(text);
    const stream = tokenizer.streamText([before!]);
    const parts = [...after.map((token) => stream.push(token)), stream.end()];
    expect(text.endsWith(parts.join(''))).toBe(true);
    expect(parts.join('')).toContain('👩‍👩‍👧 größe 日本語,\n  what   the');
    expect(parts.filter((part) => part.includes('\ufffd'))).toEqual([]);
    expect(parts.length).toBeGreaterThan(parts.filter((part) => part !== '').length);
  });
});

describe('a tokenizer', () => {
  it('whose tokens reach over words is given whole texts', () => {
    const json = byteLevel(patterns.gpt4) as {
      pre_tokenizer: { pretokenizers: object[] };
      model: { vocab: object; merges: string[][] };
    };
    json.pre_tokenizer.pretokenizers.shift();
    Object.assign(json.model.vocab, { eĠ: 580, eĠr: 581 });
    json.model.merges.unshift(['e', 'Ġ'], ['eĠ', 'r']);
    const library = new Library(json, {}) as { encode(text: string): { ids: number[] } };
    const text = 'the roof, the road';
    const chunks = chunksOf(opened(json), piecesOf(Buffer.from(text), 3));
    expect(chunks).toHaveLength(1);
    expect(chunks[0]).toContain(581);
    expect(chunks[0]).toEqual(library.encode(text).ids);
  });

  it('puts in front of a prompt what its texts begin with', () => {
    const tokenizer = opened(sentencePiece(), { eos_token: { content: '</s>' } });
    expect(tokenizer.endOfText).toBe(700);
    expect(tokenizer.encode('The', { begins: true })).toEqual([700, ...tokenizer.encode('The')]);
  });

  it('refuses what it cannot read, and says what can be', () => {
    const folder = temporaryFolder();
    const at = (name: string) => join(folder, name);
    mkdirSync(at('empty'));
    writeFileSync(at('broken.json'), '{');
    writeFileSync(at('other.json'), '{"model": 1}');
    writeFileSync(at('mine.tiktoken'), 'IQ== 0\n');
    writeFileSync(at('cl100k_base.tiktoken'), 'IQ== 0\nno rank\n');
    expect(() => openTokenizer(at('none'))).toThrow(/does not exist; it is 'bytes', a folder/);
    expect(() => openTokenizer(at('empty'))).toThrow(/neither tokenizer.json nor .*AutoTokenizer/);
    expect(() => openTokenizer(at('broken.json'))).toThrow(/broken.json cannot be read as JSON/);
    expect(() => openTokenizer(at('other.json'))).toThrow(/other.json cannot be read/);
    expect(() => openTokenizer(at('mine.tiktoken'))).toThrow(
      /cl100k_base, o200k_base are known, mine is not/,
    );
    expect(() => openTokenizer(at('cl100k_base.tiktoken'))).toThrow(/line 2 is not a token in Base64/);
    const tokenizer = opened(byteLevel(patterns.gpt2));
    expect(() => tokensOf(tokenizer, [Uint8Array.of(0x66, 0xff, 0x66)])).toThrow(
      /^a.txt is no UTF-8.*iconv/s,
    );
  });

  it("of tiktoken's ranks merges what has the lowest rank first", () => {
    const folder = temporaryFolder();
    const tokens = [
      ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
      'in',
      'th',
      'the',
      ' the',
      'hein',
    ];
    const lines = tokens.map((token, rank) => `${Buffer.from(token as string).toString('base64')} ${rank}\n`);
    writeFileSync(join(folder, 'r50k_base.tiktoken'), lines.join(''));
    const tokenizer = openTokenizer(folder);
    expect(tokenizer.vocabularySize).toBe(50_257);
    expect(tokenizer.endOfText).toBe(50_256);
    expect(tokenizer.encode('the thein<|endoftext|>')).toEqual([258, 259, 256, 50_256]);
    const stream = tokenizer.streamText([]);
    expect([258, 259, 256].map((token) => stream.push(token)).join('')).toBe('the thein');
  });
});
