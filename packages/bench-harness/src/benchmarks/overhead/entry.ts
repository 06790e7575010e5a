import type { BuiltInBenchmark } from '../entry.ts';

export const overhead: BuiltInBenchmark = {
  name: 'overhead',
  definition: async () => (await import('./benchmark.ts')).overheadBenchmark,
  measure: async () => (await import('./measure.ts')).measureOverhead,
  command: {
    summary: 'Host time of an eager op, cold and warm, and what profiling and memory recording cost a step',
    load: async () => (await import('./command.ts')).overheadCommand,
  },
  tasks: { 'first-op': async () => (await import('./first-op.ts')).firstOpTask },
};
