/** A seeded stream of choices: the same seed and name draw the same case on every machine. */
export class RandomSource {
  #state: number;

  constructor(name: string, seed: number) {
    // FNV-1a over the name, so that ops do not share their draws.
    let hash = 0x811c9dc5;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
    this.#state = (hash ^ Math.imul(seed + 1, 0x9e3779b1)) >>> 0;
    for (let i = 0; i < 4; i++) this.uniform();
  }

  /** In [0, 1), by Mulberry32. */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer of low, low + 1... high. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.uniform() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)]!;
  }

  /** One of the choices, in proportion to their weights. */
  weighted<T>(choices: readonly (readonly [number, T])[]): T {
    let left = this.uniform() * choices.reduce((sum, [weight]) => sum + weight, 0);
    return choices.find(([weight]) => (left -= weight) < 0)?.[1] ?? choices.at(-1)![1];
  }

  /** Standard normal, by Box & Muller. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }

  shuffled<T>(values: readonly T[]): T[] {
    const result = [...values];
    for (let i = result.length - 1; i > 0; i--) {
      const j = this.integer(0, i);
      [result[i], result[j]] = [result[j]!, result[i]!];
    }
    return result;
  }
}
