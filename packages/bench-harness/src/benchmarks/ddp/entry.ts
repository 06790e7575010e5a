import type { BuiltInBenchmark } from '../entry.ts';

export const ddp: BuiltInBenchmark = {
  name: 'ddp',
  definition: async () => (await import('./benchmark.ts')).ddpBenchmark,
  measure: async () => (await import('./measure.ts')).measureDdp,
  command: {
    summary: 'Time and memory of data-parallel training on several ranks, and what its communication costs',
    load: async () => (await import('./command.ts')).ddpCommand,
  },
};
