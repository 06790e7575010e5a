import type { BuiltInBenchmark } from '../entry.ts';

export const e2e: BuiltInBenchmark = {
  name: 'e2e',
  definition: async () => (await import('./benchmark.ts')).e2eBenchmark,
  measure: async () => (await import('./measure.ts')).measureE2e,
  command: {
    summary: 'Time forward, backward and optimizer of a Transformer language model; lists sweep',
    load: async () => (await import('./command.ts')).e2eCommand,
  },
};
