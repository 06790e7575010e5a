import type { CudaProperties } from '../../cuda/kernel.ts';
import type { Program } from '../graph/graph.ts';
import { Arena } from './arena.ts';
import { parameterKeys } from '../passes/carry-low-precision-copies.ts';
import { lastReadsOf } from '../passes/operands.ts';
import { optimize } from '../passes/optimize.ts';

/** A program as a GPU is to run it, and where it hands on what it makes. */
export interface PlannedProgram {
  readonly program: Program;
  readonly arena: Arena;
}

/** As many bytes more than there could be are as good as none: the device hands out memory by them. */
export const negligibleBytes = 2 ** 21;

/**
 * Plans a program for a GPU of these properties. It carries copies of parameters from run to run, which spares their casts,
 * as far as it then holds no more than the function did when it ran eagerly: gradients take the place of copies that have
 * been read for the last time, but not of those that are carried.
 */
export function planProgram(program: Program, properties: CudaProperties): PlannedProgram {
  const notCarried = new Set<string>();
  let best = plan(program, properties, notCarried);
  for (;;) {
    const excess = bytesHeld(best) - program.eagerPeakBytes;
    const keys = excess > negligibleBytes ? copiesOf(best.program, excess) : [];
    if (keys.length === 0) return best;
    for (const key of keys) notCarried.add(key);
    const next = plan(program, properties, notCarried);
    if (bytesHeld(next) >= bytesHeld(best)) return best;
    best = next;
  }
}

function plan(program: Program, properties: CudaProperties, notCarried: ReadonlySet<string>): PlannedProgram {
  const optimized = optimize(program, properties, notCarried);
  return { program: optimized, arena: new Arena(optimized) };
}

function bytesHeld({ program: { storages }, arena }: PlannedProgram): number {
  return storages.reduce(
    (sum, { source, byteLength }) => sum + (source.kind === 'copy' ? byteLength : 0),
    arena.byteLength,
  );
}

/**
 * The parameters of copies of so many bytes together, or of all: of those first that are read for the last time before
 * others, as the last layers' are, for they find the most room among what is handed on.
 */
function copiesOf({ calls, storages }: Program, bytes: number): string[] {
  const lastReads = lastReadsOf(calls);
  const copies = storages
    .flatMap(({ source, byteLength }, number) =>
      source.kind === 'copy'
        ? [{ casts: source.casts, byteLength, lastRead: lastReads.get(number) ?? -1 }]
        : [],
    )
    .toSorted((a, b) => a.lastRead - b.lastRead);
  const chosen: string[] = [];
  let sum = 0;
  for (const { casts, byteLength } of copies) {
    if (sum >= bytes) break;
    chosen.push(...parameterKeys(casts));
    sum += byteLength;
  }
  return chosen;
}
