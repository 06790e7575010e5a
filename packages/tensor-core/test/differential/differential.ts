import type { DType, Device } from '../../src/index.ts';
import { KernelLimitError } from '@roofline/cuda/testing';
import { drawChain } from './programs/chains.ts';
import { compareOutcomes } from './compare.ts';
import { differenceOf } from './differences.ts';
import { opTable } from './ops/table.ts';
import { type Program, programOf } from './programs/program.ts';
import { RandomSource } from './programs/random-source.ts';
import type { Failure } from './report.ts';
import { runOurs } from './run-ours.ts';
import { TorchServer } from './torch/torch-server.ts';

export interface DifferentialOptions {
  readonly device: Device;
  readonly python: string;
  /** Cases in all, spread evenly over the table's entries and the chains. */
  readonly cases: number;
  readonly seed: number;
  /** Only programs whose floating-point inputs are of these. Default all. */
  readonly dtypes?: readonly DType[];
  /** Only these ops; `chain` is one. Default all. */
  readonly ops?: readonly string[];
}

export interface DifferentialResult {
  /** How many of the programs drawn were compared. Those that need more kernels than the device may have are not. */
  readonly cases: number;
  readonly failures: readonly Failure[];
  /** How many cases each documented difference accounted for. */
  readonly differing: ReadonlyMap<string, number>;
}

/** Programs in flight to Python: enough that neither side waits for the other. */
const window = 32;

/** Runs every op, and chains of them, on both sides. The seed and an op's name decide its cases. */
export async function runDifferential(options: DifferentialOptions): Promise<DifferentialResult> {
  const server = new TorchServer(options.python);
  const failures: Failure[] = [];
  const differing = new Map<string, number>();
  let cases = 0;
  const compareNext = async (program: Program) => {
    const theirs = await server.receive();
    const ours = runOurs(program, options.device);
    if (ours.error instanceof KernelLimitError) return;
    const mismatch = compareOutcomes(program, ours, theirs);
    const difference = mismatch && differenceOf(program, mismatch);
    if (difference) differing.set(difference.title, (differing.get(difference.title) ?? 0) + 1);
    else if (mismatch) failures.push({ program, mismatch });
    cases++;
  };
  try {
    const sent: Program[] = [];
    for (const program of drawPrograms(options)) {
      server.send(program);
      sent.push(program);
      if (sent.length >= window) await compareNext(sent.shift()!);
    }
    for (const program of sent) await compareNext(program);
  } finally {
    server.close();
  }
  return { cases, failures, differing };
}

/** The programs of a run, drawn from its seed. */
export function* drawPrograms({
  cases,
  seed,
  dtypes,
  ops,
}: Omit<DifferentialOptions, 'device' | 'python'>): Generator<Program> {
  const sources = programSources().filter(({ name }) => !ops || ops.includes(name));
  const rounds = Math.ceil(cases / sources.length);
  for (let round = 0; round < rounds; round++) {
    for (const { draw } of sources) {
      const program = draw(seed + round);
      if (!dtypes || hasOnly(program, dtypes)) yield program;
    }
  }
}

function hasOnly({ inputs }: Program, dtypes: readonly DType[]): boolean {
  const allowed = [...dtypes, 'int32', 'int64', 'bool'];
  return inputs.every(({ dtype }) => allowed.includes(dtype));
}

/** The table's entries, and chains as often as five of them. An entry's draws do not depend on the others'. */
function programSources(): { name: string; draw: (seed: number) => Program }[] {
  const entries = opTable.map((entry, i) => {
    const earlier = opTable.slice(0, i).filter(({ name }) => name === entry.name).length;
    const stream = `${entry.name} ${earlier}`;
    return {
      name: entry.name,
      draw: (seed: number) => programOf(entry, seed, entry.draw(new RandomSource(stream, seed))),
    };
  });
  const chains = Array.from({ length: 5 }, (_, i) => ({
    name: 'chain',
    draw: (seed: number) => drawChain(new RandomSource(`chain ${i}`, seed), seed),
  }));
  return [...entries, ...chains];
}
