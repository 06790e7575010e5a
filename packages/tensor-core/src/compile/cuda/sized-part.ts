/** What an arena holds from one call of a program to another, both included, with the bytes that it takes there. */
export interface SizedPart {
  readonly bytes: number;
  readonly first: number;
  readonly last: number;
}

/** Of two parts the one that is needed longer; of those the larger. */
export function longestFirst(a: SizedPart, b: SizedPart): number {
  return b.last - b.first - (a.last - a.first) || b.bytes - a.bytes;
}
