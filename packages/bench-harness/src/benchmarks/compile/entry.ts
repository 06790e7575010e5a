import type { BuiltInBenchmark } from '../entry.ts';

export const compile: BuiltInBenchmark = {
  name: 'compile',
  definition: async () => (await import('./benchmark.ts')).compileBenchmark,
  measure: async () => (await import('./measure.ts')).measureCompile,
  command: {
    summary:
      'Show the program of a compiled step: what was fused, kernels before and after, arena, compile time cold and warm',
    group: 'look',
    load: async () => (await import('./command.ts')).compileCommand,
  },
  tasks: { 'compile-time': async () => (await import('./compile-times.ts')).compileTimeTask },
};
