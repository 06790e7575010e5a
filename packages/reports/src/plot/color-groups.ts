/** The palette has as many colours; the last one is a grey. */
const COLORS = 6;

/** Which colour of the palette, from 1, each part of a chart takes; 0 for none. */
export interface ColorGroups {
  colorOf(part: { category?: string | undefined; name: string }): number;
  /** What the colours stand for; empty where they only tell neighbours apart. */
  legend: { label: string; color: number }[];
}

/**
 * Categories take the colours in the order of their weight, and share the last one where they are more. Parts
 * without a category take none next to categories, whose colours mean something; else theirs by name, in turn.
 */
export function colorGroups(
  parts: readonly { category?: string | undefined; name: string; weight: number }[],
): ColorGroups {
  const weights = new Map<string, number>();
  const names = new Map<string, number>();
  for (const { category, name, weight } of parts) {
    if (category !== undefined) weights.set(category, (weights.get(category) ?? 0) + weight);
    else if (!names.has(name)) names.set(name, (names.size % COLORS) + 1);
  }
  const ranked = [...weights].sort((a, b) => b[1] - a[1]).map(([category]) => category);
  const colors = new Map(ranked.map((category, rank) => [category, Math.min(rank + 1, COLORS)]));
  const shared = ranked.length > COLORS ? ranked.splice(COLORS - 1) : [];
  const legend = ranked.map((label) => ({ label, color: colors.get(label)! }));
  if (shared.length > 0) legend.push({ label: `${shared.length} others`, color: COLORS });
  return {
    colorOf({ category, name }) {
      if (category !== undefined) return colors.get(category)!;
      return colors.size > 0 ? 0 : names.get(name)!;
    },
    legend,
  };
}
