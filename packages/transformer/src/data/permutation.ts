const rounds = 6;

/**
 * Where a random permutation of 0, 1... `count` - 1 takes `index`; each seed and epoch have one of their own. It is calculated
 * from these numbers alone, without a table of `count` entries, by a Feistel network whose results beyond `count` are put
 * through it again (Black & Rogaway 2002, "Ciphers with Arbitrary Finite Domains"). `count` is at most 2^52.
 */
export function permuted(index: number, count: number, seed: number, epoch: number): number {
  const halfBits = Math.ceil(Math.log2(count) / 2);
  const keys = Array.from({ length: rounds }, (_, round) =>
    hash([lowWord(seed), highWord(seed), epoch, round]),
  );
  let place = index;
  do place = enciphered(place, halfBits, keys);
  while (place >= count);
  return place;
}

/** A permutation of the numbers of twice so many bits. */
function enciphered(value: number, halfBits: number, keys: readonly number[]): number {
  const half = 2 ** halfBits;
  let [left, right] = [Math.floor(value / half), value % half];
  for (const key of keys) [left, right] = [right, left ^ (hash([right, key]) & (half - 1))];
  return left * half + right;
}

/** 32 bits that depend on all bits of all words: the mixing of MurmurHash3 (Appleby 2011), word by word. */
function hash(words: readonly number[]): number {
  let h = 0;
  for (const word of words) {
    h ^= word;
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    h = (h ^ (h >>> 16)) + 0x9e3779b9;
  }
  return h;
}

function lowWord(value: number): number {
  return value >>> 0;
}

function highWord(value: number): number {
  return Math.floor(value / 2 ** 32);
}
