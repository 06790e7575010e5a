import type { CudaDevice } from '../backends/cuda/device.ts';
import { CompileError } from '../base/errors.ts';
import { CpuExecutable } from './cpu/cpu-executable.ts';
import { CudaExecutable } from './cuda/cuda-executable.ts';
import type { ExecutableOptions, Executable } from './executable/executable.ts';
import type { Graph } from './graph/graph.ts';

/** By type of device: devices themselves know no graphs. */
const executables = {
  cpu: (graph: Graph, options?: Partial<ExecutableOptions>) => {
    if (options?.memoryBudget === undefined) return new CpuExecutable(graph);
    throw new CompileError(
      'compile: memoryBudget is kept on GPUs, where a program lays out its memory before it runs; on the CPU leave it out, or use ' +
        'checkpoint().',
    );
  },
  cuda: (graph: Graph, options?: Partial<ExecutableOptions>) =>
    new CudaExecutable(graph, (graph.device as CudaDevice).internals, options),
} as const;

/** Makes a graph ready to run on its device. Throws a CompileError for what that device cannot run compiled. */
export function makeExecutable(graph: Graph, options?: Partial<ExecutableOptions>): Executable {
  return executables[graph.device.type](graph, options);
}
