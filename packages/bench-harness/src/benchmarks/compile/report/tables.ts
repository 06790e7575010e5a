import type { Note, Section, Table } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import { tableOf, tablesOf, type ColumnOf } from '../../../report/declared-table.ts';
import { measuredOf, type Measured, type Measurement } from '../../../report/measurement.ts';
import { column } from '../../../report/standard-columns.ts';
import { stepNames, stepParameters } from '../../e2e/parameters.ts';
import type { CompileCell } from '../parameters.ts';
import type { CallGroup, CompileResult } from '../result.ts';

export type CompileMeasurement = Measurement<CompileCell, CompileResult>;
type Program = Measured<CompileCell, CompileResult>;
type Programs = readonly CompileMeasurement[];

/** A value that says something only where there was such a thing. */
const ifAny = (value: number) => (value === 0 ? undefined : value);

const count = (
  key: keyof CompileResult & string,
  label: string,
  description: string,
  more: Partial<ColumnOf<Program>> = {},
) =>
  column.number<Program>(key, label, ({ result }) => result[key] as number | null, { description, ...more });
/** Of what not every program has. */
const some = (key: keyof CompileResult & string, label: string, description: string) =>
  column.number<Program>(key, label, ({ result }) => ifAny(Number(result[key])), {
    ...{ description, shown: 'filled' },
  });
const bytes = (key: keyof CompileResult & string, label: string, description: string) =>
  column.bytes<Program>(key, label, ({ result }) => ifAny(Number(result[key])), {
    ...{ description, shown: 'filled' },
  });
/** What is compared across a row. */
const held = (key: keyof CompileResult & string, label: string, description: string) => ({
  ...bytes(key, label, description),
  unitGroup: 'held',
});

const columns: readonly ColumnOf<Program>[] = [
  count('tracedCalls', 'Traced calls', 'Ops that the step calls.'),
  count('calls', 'Calls', 'Those of them whose work is used.'),
  count('launches', 'Launches', 'On a GPU one graph; on the CPU ONNX graphs, and ops that run on their own.'),
  count('nodesBefore', 'Kernels before', 'With every fused op on its own; on the CPU nodes of the graphs.', {
    shown: 'filled',
  }),
  count('nodes', 'After', 'Kernels, copies and fills of the graph.', { emphasis: 'strong', shown: 'filled' }),
  some('repeatedCalls', 'Repeated calls', 'Left out: an earlier one does the same.'),
  bytes(
    'bytesInRegisters',
    'Traffic saved',
    'What fused ops hand on in registers: a write and a read less of each.',
  ),
  some('carriedCasts', 'Casts carried', 'Of parameters, which optimizers write for the next step.'),
  bytes(
    'carriedBytes',
    'Traffic spared',
    'What these casts would move, less what optimizers write for them.',
  ),
  held('arenaBytes', 'Arena', 'What the program holds of the device between its runs.'),
  held('eagerPeakBytes', 'Eager peak', 'The most that what the step makes held at a time, run eagerly.'),
  some(
    'mergedProducts',
    'Merged products',
    'Those that are parts of another one, with which they share an operand.',
  ),
  bytes('operandBytesSaved', 'Operands spared', 'What merged products do not read again.'),
  some('accumulatedProducts', 'Accumulating products', 'Those that add to something as they go.'),
  some(
    'multipliedGradients',
    'Gradients in updates',
    "Those that the optimizer's kernel multiplies itself, so that they are never in memory.",
  ),
  some(
    'callsBeside',
    'Parallel calls',
    'Those on a branch of the CUDA graph, which run in parallel with others.',
  ),
  // The CPU plans no arena: ONNX Runtime has its own.
  column.ratio(
    'arenaRatio',
    'Arena / eager',
    ({ result }) => ifAny(result.arenaBytes / result.eagerPeakBytes),
    {
      ...{ emphasis: 'strong', shown: 'filled' },
    },
  ),
  column.ms('compileMs', 'Compiling', ({ result }) => result.compilation.durationMs, {
    description: 'By the wall clock, until the first step that ran as a program.',
  }),
  column.ms('coldMs', 'Compiling, cold', ({ result }) => result.compileTimes?.coldMs, {
    ...{ shown: 'filled', description: 'The same in a fresh process with no kernel compiled yet.' },
  }),
  column.ms('warmMs', 'Compiling, warm', ({ result }) => result.compileTimes?.warmMs, {
    ...{
      shown: 'filled',
      description: 'The same in another one, with the kernels of the first in the cache.',
    },
  }),
  column.ms('hostMs', 'Host', ({ result }) => summarize(result.hostMs).median, {
    description: 'Median until the host may go on.',
  }),
  column.ms('deviceMs', 'Device', ({ time }) => time!.median, {
    ...{ emphasis: 'strong', description: 'Median between two events around a step.' },
  }),
];

/** One row a program: `explain()`, and what a step takes. */
export function programTable(cells: Programs): Table {
  const title = 'Compiled programs';
  return tableOf({ id: 'programs', title, parameters: stepParameters, columns }, cells as readonly Program[]);
}

const sum = (groups: readonly CallGroup[], value: (group: CallGroup) => number) =>
  groups.reduce((total, group) => total + value(group), 0);

const callCount = ({ groups }: { readonly groups: readonly CallGroup[] }) =>
  sum(groups, ({ calls }) => calls);
const nodeCount = ({ groups }: { readonly groups: readonly CallGroup[] }) =>
  groups.some(({ nodes }) => nodes === null) ? null : sum(groups, ({ nodes }) => nodes!);

/** Ops that became one, the most frequent first; none where nothing was fused. */
export function fusedTable(cells: Programs): Table[] {
  const names = stepNames(cells);
  const rows = measuredOf(cells).flatMap(({ record, cell, result }) => {
    const fused = result.table.filter(({ members }) => members.length > 0);
    return [...Map.groupBy(fused, ({ members }) => members.join(' + '))]
      .map(([members, groups]) => ({ record, cell: {}, name: names.name(cell), members, groups }))
      .sort((a, b) => callCount(b) - callCount(a));
  });
  return tablesOf(
    {
      ...{ id: 'fused', title: 'What was fused' },
      columns: [
        column.text('cell', 'Cell', ({ name }) => name),
        column.text('members', 'Ops that became one', {
          ...{ emphasis: 'strong', overflow: 'shorten' },
        }),
        column.number('calls', 'Calls', callCount),
        column.number('nodesBefore', 'Kernels before', ({ groups }) =>
          sum(groups, ({ calls, members, nodes }) => Math.max(calls * members.length, nodes ?? 0)),
        ),
        column.number('nodes', 'After', nodeCount),
      ],
    },
    rows,
  );
}

/** Where no op of ours became part of another one, what became of them. */
export function unfusedNotes(cells: Programs): Note[] {
  const names = stepNames(cells);
  return measuredOf(cells).flatMap(({ record, cell, result }): Note[] => {
    if (result.table.some(({ members }) => members.length > 0)) return [];
    const { calls, launches } = result;
    const inLaunches = launches === 1 ? '1 launch' : `${launches} launches`;
    const text =
      record.environment.device.type === 'cpu'
        ? `Nothing was fused in ${names.name(cell)}: on the CPU its ${calls} calls take ${inLaunches}, of ONNX graphs and ` +
          'single ops, whose nodes ONNX Runtime fuses as it loads them.'
        : `Nothing was fused in ${names.name(cell)}: no two of its ${calls} calls could be one kernel.`;
    return [{ kind: 'note', text }];
  });
}

/** Every call of each program, those alike in all layers as one row. */
export function callSections(cells: Programs): Section[] {
  const names = stepNames(cells);
  return cells.flatMap(({ record, cell, result }, index): Section[] => {
    if (!result) return [];
    const rows = result.table.map((group) => ({ record, cell: {}, ...group }));
    const table = tableOf({ id: `calls-${index}`, title: 'Calls of the program', ...calls }, rows);
    return [{ id: `program-${index}`, title: `Program of ${names.name(cell)}`, blocks: [table] }];
  });
}

/** Of what is empty in all calls no column is shown. */
const isSaid = (key: keyof CallGroup) => (groups: readonly CallGroup[]) =>
  groups.some((group) => Boolean(Array.isArray(group[key]) ? group[key].length : group[key]));

const calls = {
  caption: 'In their order; calls that are alike in all layers are one row.',
  columns: [
    column.text<CallGroup>('range', 'Range', { shown: isSaid('range') }),
    column.text<CallGroup>('op', 'Op', { emphasis: 'strong', overflow: 'shorten' }),
    column.text<CallGroup>('members', 'Ops in it', ({ members }) => members.join(' + '), {
      ...{ overflow: 'shorten', shown: isSaid('members') },
    }),
    column.text<CallGroup>('outputs', 'Outputs', { shown: isSaid('outputs') }),
    column.number<CallGroup>('calls', 'Calls'),
    column.number<CallGroup>('nodes', 'Kernels', {
      ...{ description: 'Kernels, copies and fills.', shown: isSaid('nodes') },
    }),
  ],
};
