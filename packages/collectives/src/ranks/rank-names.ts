/** Ranks by their numbers, in words: `rank 2`, `ranks 2 and 3`, `ranks 0, 2 and 3`. */
export function rankNames(ranks: readonly number[]): string {
  if (ranks.length === 1) return `rank ${ranks[0]}`;
  return `ranks ${ranks.slice(0, -1).join(', ')} and ${ranks.at(-1)}`;
}
