import type { BuiltInBenchmark } from '../entry.ts';

export const allreduce: BuiltInBenchmark = {
  name: 'allreduce',
  definition: async () => (await import('./benchmark.ts')).allreduceBenchmark,
  measure: async () => (await import('./measure.ts')).measureCollective,
  command: {
    summary: 'Collectives of Gloo and NCCL: bus bandwidth by size and ranks, next to torch.distributed',
    load: async () => (await import('./command.ts')).allreduceCommand,
  },
};
