/** What an arena holds from the call `first` to the call `last`, both included, with the bytes that it takes there. */
export interface SizedPart {
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
}

/** Compares parts: those needed for longer first, then the larger ones. */
export function longestFirst(a: SizedPart, b: SizedPart): number {
  return b.last - b.first - (a.last - a.first) || b.bytes - a.bytes;
}
