import type { BuiltInBenchmark } from '../entry.ts';

export const precision: BuiltInBenchmark = {
  name: 'precision',
  definition: async () => (await import('./benchmark.ts')).precisionBenchmark,
  measure: async () => (await import('./measure.ts')).measurePrecision,
  command: {
    summary: 'Mixed precision: accumulation, dtypes under autocast, accuracy, loss curves, and speed-ups',
    load: async () => (await import('./command.ts')).precisionCommand,
  },
};
