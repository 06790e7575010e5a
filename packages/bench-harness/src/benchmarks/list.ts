import type { BuiltInBenchmark } from './entry.ts';

/**
 * Every benchmark: `roofline`, its records, its reports and its studies know no other list. Nothing of one is loaded before it is
 * needed.
 */
export const benchmarkEntries: readonly BuiltInBenchmark[] = [
  {
    name: 'allreduce',
    definition: async () => (await import('./allreduce/benchmark.ts')).allreduceBenchmark,
    measure: async () => (await import('./allreduce/measure.ts')).measureCollective,
    command: {
      summary: 'Collectives of Gloo and NCCL: bus bandwidth by size and ranks, next to torch.distributed',
      load: async () => (await import('./allreduce/command.ts')).allreduceCommand,
    },
  },
  {
    name: 'attention',
    definition: async () => (await import('./attention/benchmark.ts')).attentionBenchmark,
    measure: async () => (await import('./attention/measure.ts')).measureAttention,
    command: {
      summary: 'Time and memory of attention alone, forward and backward, by sequence and head dimension',
      load: async () => (await import('./attention/command.ts')).attentionCommand,
    },
  },
  {
    name: 'compile',
    definition: async () => (await import('./compile/benchmark.ts')).compileBenchmark,
    measure: async () => (await import('./compile/measure.ts')).measureCompile,
    command: {
      summary:
        'Show the program of a compiled step: what was fused, kernels before and after, arena, compile time cold and warm',
      group: 'look',
      load: async () => (await import('./compile/command.ts')).compileCommand,
    },
    tasks: { 'compile-time': async () => (await import('./compile/compile-times.ts')).compileTimeTask },
  },
  {
    name: 'ddp',
    definition: async () => (await import('./ddp/benchmark.ts')).ddpBenchmark,
    measure: async () => (await import('./ddp/measure.ts')).measureDdp,
    command: {
      summary: 'Time and memory of data-parallel training on several ranks, and what its communication costs',
      load: async () => (await import('./ddp/command.ts')).ddpCommand,
    },
  },
  {
    name: 'e2e',
    definition: async () => (await import('./e2e/benchmark.ts')).e2eBenchmark,
    measure: async () => (await import('./e2e/measure.ts')).measureE2e,
    command: {
      summary: 'Time forward, backward and optimizer of a Transformer language model; lists sweep',
      load: async () => (await import('./e2e/command.ts')).e2eCommand,
    },
  },
  {
    name: 'flash',
    definition: async () => (await import('./flash/benchmark.ts')).flashBenchmark,
    measure: async () => (await import('./flash/measure.ts')).measureFlash,
    command: {
      summary:
        "Attention kernels compared with plain attention and PyTorch's: TFLOP/s, share of the roof, speed-up",
      load: async () => (await import('./flash/command.ts')).flashCommand,
    },
  },
  {
    name: 'memory',
    definition: async () => (await import('./memory/benchmark.ts')).memoryBenchmark,
    measure: async () => (await import('./memory/measure.ts')).measureMemory,
    command: {
      summary: 'Record where the memory of a step goes: timeline, peaks, origins, what backward needs',
      group: 'look',
      load: async () => (await import('./memory/command.ts')).memoryCommand,
    },
  },
  {
    name: 'overhead',
    definition: async () => (await import('./overhead/benchmark.ts')).overheadBenchmark,
    measure: async () => (await import('./overhead/measure.ts')).measureOverhead,
    command: {
      summary: 'Host time of an eager op, cold and warm, and what profiling and memory recording cost a step',
      load: async () => (await import('./overhead/command.ts')).overheadCommand,
    },
    tasks: { 'first-op': async () => (await import('./overhead/first-op.ts')).firstOpTask },
  },
  {
    name: 'precision',
    definition: async () => (await import('./precision/benchmark.ts')).precisionBenchmark,
    measure: async () => (await import('./precision/measure.ts')).measurePrecision,
    command: {
      summary: 'Mixed precision: accumulation, dtypes under autocast, accuracy, loss curves, and speed-ups',
      load: async () => (await import('./precision/command.ts')).precisionCommand,
    },
  },
  {
    name: 'profile',
    definition: async () => (await import('./profile/benchmark.ts')).profileBenchmark,
    measure: async () => (await import('./profile/measure.ts')).measureProfile,
    command: {
      summary: 'Show the kernels of a training step: by name, by range, over time; no Nsight needed',
      group: 'look',
      load: async () => (await import('./profile/command.ts')).profileCommand,
    },
  },
  {
    name: 'tiles',
    definition: async () => (await import('./tiles/benchmark.ts')).tilesBenchmark,
    measure: async () => (await import('./tiles/measure.ts')).measureTiles,
  },
  {
    name: 'warmup',
    definition: async () => (await import('./warmup/benchmark.ts')).warmupBenchmark,
    measure: async () => (await import('./warmup/measure.ts')).measureWarmup,
  },
];
