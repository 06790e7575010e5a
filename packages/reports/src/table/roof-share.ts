import { measuredText } from './number-text.ts';

/**
 * A share of the roof in words where a number alone would mislead: within the roof's own `spread` it is `at the roof`,
 * and beyond that `112 %, above the roof`: caches served what the roof counts as traffic to memory, say.
 */
export function roofShareText(share: number, spread = 0): string {
  if (spread > 0 && Math.abs(share - 1) <= spread) return 'at the roof';
  const percent = measuredText(share, { kind: 'percent' });
  return share > 1 && percent !== '100 %' && percent !== '100.0 %' ? `${percent}, above the roof` : percent;
}
