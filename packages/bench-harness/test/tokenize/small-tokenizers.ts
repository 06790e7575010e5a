/** Small tokenizers as files of Hugging Face's hold them, of the kinds that differ in how they split a text. */

/** What their vocabularies are learnt from. */
const text =
  "The roof is what the hardware allows; the floor isn't what the work needs. It's größe, naïve, 日本語 and 中文字。\n" +
  'def f(x):\n    return x.y + 12\n\n\nfor (let i = 0; i < 100; i++) { foo_bar(); }\n'.repeat(2) +
  'emoji 👍 👩‍👩‍👧, the end.\n\n\t  The roof (the floor) -- the roof...\n';

/** Bytes as the characters of a vocabulary of bytes. */
const characters = (() => {
  const isSeen = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  let unseen = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : unseen++));
})();
const byBytes = (word: string) => [...Buffer.from(word)].map((byte) => characters[byte]!);

export const patterns = {
  gpt2: String.raw`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  gpt4: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
};

/** As GPT-2, Llama 3 and Qwen: words by a pattern, tokens of bytes. */
export function byteLevel(pattern: string, { normalizer = null as object | null } = {}): object {
  const words = text.match(new RegExp(pattern.replace('(?i:', '(?:'), 'gu'))!.map(byBytes);
  return {
    added_tokens: added('<|endoftext|>', 600),
    normalizer,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel' },
    model: { type: 'BPE', ...learn(words, characters, 300) },
  };
}

/** As Llama 2: a space before each text, no words, bytes for what the vocabulary lacks. */
export function sentencePiece(): object {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  );
  const words = text.match(/ *[^ ]+/g)!.map((word) => [...word.replaceAll(' ', '▁')]);
  const first = ['<unk>', ...bytes];
  return {
    added_tokens: added('</s>', 700),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Prepend', prepend: '▁' },
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ SpecialToken: { id: '</s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [],
      special_tokens: { '</s>': { id: '</s>', ids: [700], tokens: ['</s>'] } },
    },
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        { type: 'Strip', content: ' ', start: 1, stop: 0 },
      ],
    },
    model: {
      ...{ type: 'BPE', unk_token: '<unk>', fuse_unk: true, byte_fallback: true },
      ...learn(words, [...first, ...new Set(words.flat())], 200),
    },
  };
}

function added(content: string, id: number): object[] {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  return [{ id, content, ...flags }];
}

/** Merges the pair that comes most often, time and again. */
function learn(words: readonly string[][], alphabet: readonly string[], merges: number) {
  const vocab = new Map(alphabet.map((token, id) => [token, id]));
  let parts = words.map((word) => [...word]);
  const pairs: [string, string][] = [];
  while (pairs.length < merges) {
    const counts = new Map<string, number>();
    for (const part of parts)
      for (let i = 1; i < part.length; i++) {
        const pair = `${part[i - 1]} ${part[i]}`;
        counts.set(pair, (counts.get(pair) ?? 0) + 1);
      }
    const [best] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [];
    if (best === undefined) break;
    const [left, right] = best.split(' ') as [string, string];
    pairs.push([left, right]);
    if (!vocab.has(left + right)) vocab.set(left + right, vocab.size);
    parts = parts.map((part) => merged(part, left, right));
  }
  return { vocab: Object.fromEntries(vocab), merges: pairs };
}

function merged(part: readonly string[], left: string, right: string): string[] {
  const out: string[] = [];
  for (let i = 0; i < part.length; i++) {
    const isPair = part[i] === left && part[i + 1] === right;
    out.push(isPair ? left + right : part[i]!);
    if (isPair) i++;
  }
  return out;
}
