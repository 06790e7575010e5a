import type { Mismatch } from './compare.ts';
import { format } from './programs/host-data.ts';
import { type Program, torchSteps } from './programs/program.ts';

export interface Failure {
  readonly program: Program;
  readonly mismatch: Mismatch;
}

/** What went wrong, with what, and how to see it again. */
export function describeFailure({ program, mismatch }: Failure): string {
  return [
    `${program.name}: ${mismatch.kind}: ${mismatch.detail}`,
    ...listingOf(program),
    `  again: ROOFLINE_DIFFERENTIAL=${program.name}:${program.seed} npm run test:differential`,
  ].join('\n');
}

/** A program as one would write it in Python. */
export function listingOf(program: Program): string[] {
  const inputs = program.inputs.map((input, i) => {
    const base = input.aliasOf === undefined ? format(input.dtype, input.data) : `r${input.aliasOf}'s base`;
    const views = input.views.map((view) => view.torch).join('');
    const gradient = input.requiresGrad ? ', requires a gradient' : '';
    return `  r${i} = ${input.dtype} [${input.baseShape.join(', ')}]${gradient}: ${base}${views}`;
  });
  const steps = torchSteps(program).map((step, i) => `  r${program.inputs.length + i} = ${step}`);
  return [...inputs, ...steps];
}

/** The failures by op and kind, each group with its count and its shortest ones, of different dtypes. */
export function describeFailures(failures: readonly Failure[], examples = 2): string {
  const groups = Map.groupBy(failures, ({ program, mismatch }) => `${program.name}, ${mismatch.kind}`);
  return [...groups]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([title, group]) => [`${title}: ${group.length}`, ...shortest(group, examples)].join('\n\n'))
    .join('\n\n');
}

function shortest(group: readonly Failure[], count: number): string[] {
  const byDTypes = Map.groupBy(group, ({ program }) => program.inputs.map(({ dtype }) => dtype).join());
  return [...byDTypes.values()]
    .map((alike) => alike.map(describeFailure).reduce((a, b) => (b.length < a.length ? b : a)))
    .sort((a, b) => a.length - b.length)
    .slice(0, count);
}
