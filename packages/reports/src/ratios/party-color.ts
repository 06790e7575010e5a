import type { Palette } from '../plot/palette.ts';

/** One colour names one party, on every page: ours the first, JAX's the fourth, PyTorch's and any other's the second. */
export function partyColor(name: string, palette: Palette): string {
  return palette.series[/^jax\b/i.test(name) ? 3 : 1]!;
}
