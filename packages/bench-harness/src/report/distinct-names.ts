/** What parts a name: `tiny · context 64 · naive`. */
const DELIMITER = ' · ';

/** Names that share a plot, without what all of them say. */
export interface DistinctNames {
  /** In the order in which they were given. */
  readonly names: readonly string[];
  /** What was left out: `tiny · context 64`. Empty where nothing was. */
  readonly shared: string;
}

/**
 * Leaves out of names the parts that all of them have; one at least stays. A name alone is left as it is, and so are those
 * that could not be told apart without.
 */
export function distinctNames(names: readonly string[]): DistinctNames {
  const all = names.map((name) => name.split(DELIMITER));
  const shared = (all[0] ?? []).filter((part) => all.every((parts) => parts.includes(part)));
  const isEmptied = all.some((parts) => parts.every((part) => shared.includes(part)));
  const dropped = isEmptied ? shared.slice(0, -1) : shared;
  const short = all.map((parts) => parts.filter((part) => !dropped.includes(part)).join(DELIMITER));
  if (names.length === 1 || new Set(short).size < new Set(names).size) return { names, shared: '' };
  return { names: short, shared: dropped.join(DELIMITER) };
}
