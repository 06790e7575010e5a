import type { BuiltInBenchmark } from '../entry.ts';

export const profile: BuiltInBenchmark = {
  name: 'profile',
  definition: async () => (await import('./benchmark.ts')).profileBenchmark,
  measure: async () => (await import('./measure.ts')).measureProfile,
  command: {
    summary: 'Show the kernels of a training step: by name, by range, over time; no Nsight needed',
    group: 'look',
    load: async () => (await import('./command.ts')).profileCommand,
  },
};
