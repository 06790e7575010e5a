/** A floor of `src/`: the folder of that name, and what it holds. */
export interface Floor {
  readonly name: string;
  readonly holds: string;
}

/** The floors of tensor-core, from the ground up: files import from their own floor and those below it alone, types too. */
export const floors: readonly Floor[] = [
  { name: 'base', holds: 'dtypes, shapes, errors, checks; host/: FFI, host memory, folders' },
  { name: 'cuda', holds: 'driver, memory, NVRTC, cuBLASLt, CUPTI, graphs: no word of tensors' },
  { name: 'onnx', holds: "ONNX Runtime: graphs, sessions, the processor's memory" },
  { name: 'tensor', holds: 'tensors, storages, scopes, the tape, random streams, ranges, what a device is' },
  { name: 'op', holds: 'what an op is, apply, autocast, observers, kernel arguments' },
  { name: 'backends', holds: 'cuda/ and cpu/: how each device runs an op' },
  { name: 'ops', holds: 'one file an op, in rooms; creation, transfer, printing' },
  { name: 'autograd', holds: "backward, functions of one's own, checkpoints, gradient checks" },
  { name: 'compile', holds: 'trace/, graph/, passes/, executable/, then cuda/ and cpu/; export to ONNX' },
  { name: 'observe', holds: 'memory/ and profiler/: what recordMemory and profile give' },
];

/** Above all floors: what is exported, and a GPU played by the CPU, for tests. */
export const aboveFloors: readonly string[] = [
  'index.ts',
  'native.ts',
  'tensor-methods.ts',
  'testing.ts',
  'testing',
];

/** The floors as CONTRIBUTING.md shows them, the highest first. */
export function drawFloors(): string {
  const width = Math.max(...floors.map(({ name }) => name.length));
  return floors
    .map(({ name, holds }, i) => `${String(i + 1).padStart(2)} ${name.padEnd(width)}  ${holds}\n`)
    .reverse()
    .join('');
}
