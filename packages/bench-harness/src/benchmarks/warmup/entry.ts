import type { BuiltInBenchmark } from '../entry.ts';

export const warmup: BuiltInBenchmark = {
  name: 'warmup',
  definition: async () => (await import('./benchmark.ts')).warmupBenchmark,
  measure: async () => (await import('./measure.ts')).measureWarmup,
  pipeline: {
    quick: 'e2e --size tiny --context 64 --mode train-step --warmup 0,1,2,5',
    full: 'e2e --size small --warmup 0,1,2,5',
  },
};
