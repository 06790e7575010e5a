import { allSizes, type BuiltInBenchmark } from '../entry.ts';

export const memory: BuiltInBenchmark = {
  name: 'memory',
  definition: async () => (await import('./benchmark.ts')).memoryBenchmark,
  measure: async () => (await import('./measure.ts')).measureMemory,
  command: {
    summary: 'Record where the memory of a step goes: timeline, peaks, origins, what backward needs',
    group: 'look',
    load: async () => (await import('./command.ts')).memoryCommand,
  },
  pipeline: {
    quick: 'memory --size tiny --context 64 --warmup 1 --steps 2',
    full: `memory --size ${allSizes}`,
  },
};
