import type { BuiltInBenchmark } from '../entry.ts';

export const tiles: BuiltInBenchmark = {
  name: 'tiles',
  definition: async () => (await import('./benchmark.ts')).tilesBenchmark,
  measure: async () => (await import('./measure.ts')).measureTiles,
};
