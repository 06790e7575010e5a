import type { BuiltInBenchmark } from '../entry.ts';

export const memory: BuiltInBenchmark = {
  name: 'memory',
  definition: async () => (await import('./benchmark.ts')).memoryBenchmark,
  measure: async () => (await import('./measure.ts')).measureMemory,
  command: {
    summary: 'Record where the memory of a step goes: timeline, peaks, origins, what backward needs',
    group: 'look',
    load: async () => (await import('./command.ts')).memoryCommand,
  },
};
