/** A floor of `src/`: the folder of that name, and what it holds. */
export interface Floor {
  readonly name: string;
  readonly holds: string;
}

/** The floors of tensor-core, from the ground up: files import from their own floor and those below it alone, types too. */
export const floors: readonly Floor[] = [
  { name: 'base', holds: 'dtypes, shapes and their errors' },
  { name: 'onnx', holds: "ONNX Runtime: graphs, sessions, the processor's memory" },
  { name: 'tensor', holds: 'tensors, storages, scopes, the tape, random streams, ranges, what a device is' },
  { name: 'op', holds: 'what an op is, apply, autocast, observers, kernel arguments' },
  { name: 'backends', holds: 'cuda/ and cpu/: how each device runs an op' },
  { name: 'ops', holds: 'one file an op, in rooms; creation, transfer, printing' },
  { name: 'autograd', holds: "backward, functions of one's own, checkpoints, gradient checks" },
  { name: 'compile', holds: 'trace/, graph/, passes/, executable/, then cuda/ and cpu/; export to ONNX' },
  { name: 'observe', holds: 'memory/ and profiler/: what recordMemory and profile give' },
];

/** What the lowest floor stands on: a package of its own. */
export const ground: Floor = {
  name: '@roofline/cuda',
  holds: 'driver, memory, NVRTC, cuBLASLt, CUPTI: no word of tensors; /host: errors, FFI, host memory',
};

/** Above all floors: what is exported, and a GPU played by the CPU, for tests. */
export const aboveFloors: readonly string[] = [
  'index.ts',
  'kernel-api.ts',
  'tensor-methods.ts',
  'testing.ts',
  'testing',
];

/** The floors as CONTRIBUTING.md shows them, the highest first and the package below them last. */
export function drawFloors(): string {
  const width = Math.max(...floors.map(({ name }) => name.length));
  const drawn = floors.map(({ name, holds }, i) => `${i + 1} ${name.padEnd(width)}  ${holds}\n`).toReversed();
  return [...drawn, `  ${ground.name}: ${ground.holds}\n`].join('');
}
