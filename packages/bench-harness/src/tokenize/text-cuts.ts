/** Encodes a text as a whole, without what one begins or ends with. */
export type Encode = (text: string) => readonly number[];

/** Where a text may be cut so that its parts, each on its own, give the tokens of the whole. */
export interface TextCuts {
  /** Which class a UTF-16 code unit is of. */
  readonly classes: Uint8Array;
  /** 1 where it may be cut in the middle of four code units of these classes, which `placeOf` makes an index of. */
  readonly table: Uint8Array;
  /** Whether a part that begins with a space is encoded without it, because the tokenizer puts one in front of each text. */
  readonly dropsSpace: boolean;
}

/** Classes of code units. `joined` are those that change with their neighbours: marks, apostrophes, halves of a pair. */
const [blank, space, lineFeed, letter, digit, sign, other, joined, apart] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
/** Beyond the ends of a token, where anything may be. */
const unknown = 9;

/** Anything that is seen, and is no part of a token that is looked for in the text itself. */
const isSolid = (kind: number) => kind >= letter && kind !== apart;
const isPlain = (kind: number) => (kind >= letter && kind <= other) || kind === unknown;

const classCount = 10;

/** The index of a table of cuts, between `last` and `next`. */
export function placeOf(before: number, last: number, next: number, after: number): number {
  return ((before * classCount + last) * classCount + next) * classCount + after;
}

/** A kind of cut, by the classes of what is around. */
interface CutKind {
  fits(before: number, last: number, next: number, after: number): boolean;
  /** Texts before and after such cuts. */
  readonly probes: readonly (readonly [before: string, after: string])[];
}

/**
 * Splits of pre-tokenizers are patterns of runs of letters, digits, signs or blanks, which look no further than the next run and
 * never back: none of GPT-2, GPT-4, Llama, Qwen, DeepSeek or Mistral, nor Metaspace, joins what such a cut parts. Whether the model joins
 * it, its vocabulary tells.
 */
const beforeSpace: CutKind = {
  fits: (_, last, next, after) => next === space && isSolid(last) && isPlain(after),
  probes: [
    ['word', ' word'],
    ['a 1', ' 2'],
    ['end.', ' The'],
    ["don't", ' do'],
    ['größe', ' Über'],
    ['x)', ' (y'],
    ['A\n\nb', ' c'],
    ['日本', ' 語'],
    ['e\u0301', ' e'],
    ['two  three', ' 4'],
  ],
};
const beforeLineFeed: CutKind = {
  fits: (_, last, next) => next === lineFeed && (last === letter || last === digit),
  probes: [
    ['word', '\nnext'],
    ['a1', '\n\n  b'],
    ['x', '\n'],
    ['x', '\n\t\n y'],
  ],
};
const beforeSign: CutKind = {
  fits: (_, last, next) => last === letter && next === sign,
  probes: [
    ['foo', '(bar)'],
    ['a', '...'],
    ['word', ', and'],
    ['e', '-mail'],
    ['x', '/y'],
    ['f', '();\n'],
  ],
};
const afterLineFeed: CutKind = {
  fits: (before, last, next) =>
    last === lineFeed && isSolid(before) && (next === letter || next === digit || next === other),
  probes: [
    ['word\n', 'next'],
    ['。\n', '日本'],
    [';\n', 'x = 1'],
    ['a)\n', '1.'],
  ],
};

/**
 * The cuts that this tokenizer allows; null for none. `vocabulary` are the texts of its tokens, `added` of those that are looked
 * for in the text before all else.
 */
export function findCuts(
  encode: Encode,
  vocabulary: Iterable<string>,
  added: readonly string[],
): TextCuts | null {
  const classes = classesBeside(added);
  const dropsSpace = [false, true].find((drops) => passes(beforeSpace, encode, drops));
  if (dropsSpace === undefined) return null;
  const others = [beforeLineFeed, beforeSign, afterLineFeed].filter((kind) => passes(kind, encode, false));
  const texts = [...vocabulary, ...added];
  const kinds = [beforeSpace, ...others].filter((kind) => {
    const table = tableOf([kind]);
    return !texts.some((text) => spans(text, classes, table));
  });
  return kinds.length === 0 ? null : { classes, table: tableOf(kinds), dropsSpace };
}

function tableOf(kinds: readonly CutKind[]): Uint8Array {
  return Uint8Array.from({ length: classCount ** 4 }, (_, place) => {
    const [before, last, next, after] = [3, 2, 1, 0].map(
      (power) => Math.floor(place / classCount ** power) % classCount,
    ) as [number, number, number, number];
    return Number(kinds.some((kind) => kind.fits(before, last, next, after)));
  });
}

function passes({ probes }: CutKind, encode: Encode, dropsSpace: boolean): boolean {
  return probes.every(([before, after]) => {
    const parts = [...encode(before), ...encode(dropsSpace ? after.slice(1) : after)];
    return String(parts) === String(encode(before + after));
  });
}

/** Whether a token holds both sides of a cut. */
function spans(text: string, classes: Uint8Array, table: Uint8Array): boolean {
  const kindAt = (index: number) =>
    index >= 0 && index < text.length ? classes[text.charCodeAt(index)]! : unknown;
  for (let at = 1; at < text.length; at++)
    if (table[placeOf(kindAt(at - 2), kindAt(at - 1), kindAt(at), kindAt(at + 1))] === 1) return true;
  return false;
}

/** Next to characters of added tokens nothing is cut, so that each is found where it stands whole. */
function classesBeside(added: readonly string[]): Uint8Array {
  const classes = Uint8Array.from({ length: 2 ** 16 }, (_, code) => classOf(String.fromCharCode(code)));
  for (const text of added) {
    if (/^\s{2,}$/u.test(text)) continue;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      const isEnd = at === 0 || at === text.length - 1;
      if (isEnd || !isWordClass(classes[code]!)) classes[code] = apart;
    }
  }
  return classes;
}

const isWordClass = (kind: number) => kind === letter || kind === digit || kind === blank || kind === space;

function classOf(character: string): number {
  if (character === ' ') return space;
  if (character === '\n') return lineFeed;
  // The last one is what SentencePiece makes of spaces.
  if (/[\s\p{White_Space}\u2581]/u.test(character)) return blank;
  if (/[A-Za-z]/.test(character)) return letter;
  if (/[0-9]/.test(character)) return digit;
  if (character === "'" || character === '’') return joined;
  if (/[!-~]/.test(character)) return sign;
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(character) && !/[\p{Lm}\p{Sk}\u1100-\u11ff]/u.test(character)
    ? other
    : joined;
}
