import { blockBytes } from '@roofline/cuda/parts';
import type { ArenaPart } from './arena-plan.ts';

/** What is left of so many bytes at each call. */
export class MemoryRoom {
  readonly #mostBytes: number;
  /** By call. */
  readonly #taken: number[] = [];

  constructor(parts: readonly ArenaPart[], mostBytes: number) {
    this.#mostBytes = mostBytes;
    for (const part of parts) this.#add(part);
  }

  /** Takes room for all of these parts, or for none. Returns whether there is room. */
  take(parts: readonly ArenaPart[]): boolean {
    for (const part of parts) this.#add(part);
    const isEnough = parts.every(({ first, last }) => {
      for (let call = first; call <= last; call++) if (this.#taken[call]! > this.#mostBytes) return false;
      return true;
    });
    if (!isEnough) for (const part of parts) this.#add(part, -1);
    return isEnough;
  }

  #add({ byteLength, first, last }: ArenaPart, sign = 1): void {
    for (let call = first; call <= last; call++)
      this.#taken[call] = (this.#taken[call] ?? 0) + sign * blockBytes(byteLength);
  }
}
