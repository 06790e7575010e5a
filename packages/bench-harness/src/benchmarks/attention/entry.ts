import type { BuiltInBenchmark } from '../entry.ts';

export const attention: BuiltInBenchmark = {
  name: 'attention',
  definition: async () => (await import('./benchmark.ts')).attentionBenchmark,
  measure: async () => (await import('./measure.ts')).measureAttention,
  command: {
    summary: 'Time and memory of attention alone, forward and backward, by sequence and head dimension',
    load: async () => (await import('./command.ts')).attentionCommand,
  },
};
