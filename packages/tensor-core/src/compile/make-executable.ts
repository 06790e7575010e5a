import type { CudaDevice } from '../backends/cuda/device.ts';
import { CpuProgram } from './cpu/cpu-executable.ts';
import { CudaProgram } from './cuda/cuda-executable.ts';
import type { PrepareOptions, ProgramRunner } from './executable/executable.ts';
import type { Program } from './graph/graph.ts';

/** How each type of device runs programs: devices themselves know none. */
const runners = {
  cpu: (program: Program) => new CpuProgram(program),
  cuda: (program: Program, options?: PrepareOptions) =>
    new CudaProgram(program, (program.device as CudaDevice).internals, options),
} as const;

/** Makes a program ready to run on its device. Throws a CompileError for what that cannot put into one. */
export function prepare(program: Program, options?: PrepareOptions): ProgramRunner {
  return runners[program.device.type](program, options);
}
