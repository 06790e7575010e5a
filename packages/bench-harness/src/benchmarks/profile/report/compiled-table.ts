import type { Table } from '@roofline/reports';
import { tablesOf } from '../../../report/declared-table.ts';
import { pairsBy } from '../../../report/measurement.ts';
import { column } from '../../../report/standard-columns.ts';
import { stepNames } from '../../e2e/parameters.ts';
import { profiledOf } from '../interpret.ts';
import { perStep, type Profiles } from './profile-table.ts';
import { stepTimes } from './step-times.ts';

/** Compiled steps compared with eager ones of the same cell, where a cell was profiled both ways on a GPU. */
export function compiledTables(profiles: Profiles): Table[] {
  const names = stepNames(
    profiles.filter(({ cell }) => cell.execution !== 'eager'),
    ['size', 'context', 'batch', 'attention', 'execution', 'mode', 'dtype'],
  );
  const rows = pairsBy(profiles, 'execution', 'eager').flatMap(({ cell: compiled, beside: eager }) => {
    const [before, after] = [profiledOf(eager)!, profiledOf(compiled)!];
    if (after.isOpByOp) return [];
    const { record, cell, result } = compiled;
    const times = { before: stepTimes(before), after: stepTimes(after) };
    return [{ record, cell: {}, name: names.name(cell), ...times, compilation: result.compilation }];
  });
  const strong = { emphasis: 'strong' } as const;
  return tablesOf(
    {
      ...{ id: 'compiled-beside-eager', title: 'Compiled vs eager' },
      caption: 'Medians of a step, profiled.',
      columns: [
        column.text('cell', 'Cell', ({ name }) => name, { overflow: 'shorten' }),
        column.number('eagerKernels', 'Kernels, eager', ({ before }) => before.kernels, perStep),
        column.number('compiledKernels', 'Kernels, compiled', ({ after }) => after.kernels, {
          ...{ ...perStep, ...strong },
        }),
        column.ms('eagerMs', 'Kernel time, eager', ({ before }) => before.kernelMs),
        column.ms('compiledMs', 'Kernel time, compiled', ({ after }) => after.kernelMs, strong),
        column.ratio(
          'ratio',
          'Compiled / eager',
          ({ before, after }) => after.kernelMs / before.kernelMs,
          strong,
        ),
        column.percent('eagerIdle', 'Idle, eager', ({ before }) => before.idleShare),
        column.percent('compiledIdle', 'Idle, compiled', ({ after }) => after.idleShare, strong),
        column.ms('compileMs', 'Compiling', ({ compilation }) => compilation?.durationMs ?? null, {
          description: 'By the wall clock, until the first step ran as a program.',
        }),
      ],
    },
    rows,
  );
}
