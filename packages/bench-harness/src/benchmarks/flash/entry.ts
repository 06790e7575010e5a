import type { BuiltInBenchmark } from '../entry.ts';

export const flash: BuiltInBenchmark = {
  name: 'flash',
  definition: async () => (await import('./benchmark.ts')).flashBenchmark,
  measure: async () => (await import('./measure.ts')).measureFlash,
  command: {
    summary:
      "Attention kernels compared with plain attention and PyTorch's: TFLOP/s, share of the roof, speed-up",
    load: async () => (await import('./command.ts')).flashCommand,
  },
};
