import type { BuiltInBenchmark } from '../entry.ts';

export const warmup: BuiltInBenchmark = {
  name: 'warmup',
  definition: async () => (await import('./benchmark.ts')).warmupBenchmark,
  measure: async () => (await import('./measure.ts')).measureWarmup,
};
