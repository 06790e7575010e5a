import type { CudaDevice } from '../backends/cuda/device.ts';
import { CpuExecutable } from './cpu/cpu-executable.ts';
import { CudaExecutable } from './cuda/cuda-executable.ts';
import type { ExecutableOptions, Executable } from './executable/executable.ts';
import type { Graph } from './graph/graph.ts';

/** By type of device: devices themselves know no graphs. */
const executables = {
  cpu: (graph: Graph) => new CpuExecutable(graph),
  cuda: (graph: Graph, options?: Partial<ExecutableOptions>) =>
    new CudaExecutable(graph, (graph.device as CudaDevice).internals, options),
} as const;

/** Makes a graph ready to run on its device. Throws a CompileError for what that device cannot run compiled. */
export function makeExecutable(graph: Graph, options?: Partial<ExecutableOptions>): Executable {
  return executables[graph.device.type](graph, options);
}
