import type { Column, Row, Table } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import { cellNames } from '../../../report/cell-names.ts';
import { cellRow } from '../../../report/cell-row.ts';
import { configurationColumns, sharedCaption } from '../../../report/configuration-columns.ts';
import type { CallGroup, CompileResult } from '../result.ts';
import type { CompileMeasurement } from './interpret.ts';

const text = (key: string, label: string): Column => ({ key, label, kind: 'text' });
const count = (key: string, label: string, description?: string): Column => ({
  ...{ key, label, kind: 'number' as const },
  ...(description === undefined ? {} : { description }),
});
const bytes = (key: string, label: string, description: string): Column => ({
  ...{ key, label, kind: 'bytes' as const, description },
});
/** What is compared across a row. */
const held = (key: string, label: string, description: string): Column => ({
  ...bytes(key, label, description),
  unitGroup: 'held',
});
const milliseconds = (key: string, label: string, description: string): Column => ({
  ...{ key, label, unit: 'ms', kind: 'duration' as const, description },
});

const programColumns: readonly Column[] = [
  count('tracedCalls', 'Traced calls', 'Ops that the step calls.'),
  count('calls', 'Calls', 'Those of them whose work is used.'),
  count(
    'launches',
    'Launches',
    'On a GPU one graph; on the CPU ONNX graphs, and ops that run by themselves.',
  ),
  count('nodesBefore', 'Kernels before', 'With every fused op by itself; on the CPU nodes of the graphs.'),
  { ...count('nodes', 'After', 'Kernels, copies and fills of the graph.'), emphasis: 'strong' },
  count('repeatedCalls', 'Repeated calls', 'Left out: an earlier one does the same.'),
  bytes(
    'bytesInRegisters',
    'Traffic saved',
    'What fused ops hand on in registers: a write and a read less of each.',
  ),
  count('carriedCasts', 'Casts carried', 'Of parameters, which optimizers write for the next step.'),
  bytes(
    'carriedBytes',
    'Traffic spared',
    'What these casts would move, less what optimizers write for them.',
  ),
  held('arenaBytes', 'Arena', 'What the program holds of the device between its runs.'),
  held('eagerPeakBytes', 'Eager peak', 'The most that what the step makes held at a time, run eagerly.'),
  count(
    'mergedProducts',
    'Merged products',
    'Those that are parts of another one, with which they share an operand.',
  ),
  bytes('operandBytesSaved', 'Operands spared', 'What merged products do not read again.'),
  count('accumulatedProducts', 'Accumulating products', 'Those that add to something as they go.'),
  { key: 'arenaRatio', label: 'Arena / eager', kind: 'ratio', emphasis: 'strong' },
  milliseconds('compileMs', 'Compiling', 'By the wall clock, until the first step that ran as a program.'),
  milliseconds('coldMs', 'Compiling, cold', 'The same in a fresh process with no kernel compiled yet.'),
  milliseconds(
    'warmMs',
    'Compiling, warm',
    'The same in another one, with the kernels of the first in the cache.',
  ),
  milliseconds('hostMs', 'Host', 'Median until the host may go on.'),
  { ...milliseconds('deviceMs', 'Device', 'Median between two events around a step.'), emphasis: 'strong' },
];

/** One row a program: `explain()`, and what a step takes. */
export function programTable(measurements: readonly CompileMeasurement[]): Table {
  const rows = measurements.map(programRow);
  const isFilled = ({ key }: Column) => rows.some((row) => row[key] !== undefined && row[key] !== null);
  return {
    kind: 'table',
    id: 'programs',
    title: 'Compiled programs',
    caption: sharedCaption(rows),
    columns: [...configurationColumns(rows), ...programColumns.filter(isFilled)],
    rows,
  };
}

function programRow({ cell, record, result }: CompileMeasurement): Row {
  return { ...cellRow(cell, record), ...(result ? programFields(result) : {}) };
}

function programFields(result: CompileResult): Row {
  const { tracedCalls, calls, launches, nodesBefore, nodes, repeatedCalls, bytesInRegisters } = result;
  const { accumulatedProducts, mergedProducts, operandBytesSaved } = result;
  const { carriedCasts, carriedBytes, arenaBytes, eagerPeakBytes, compilation, hostMs, deviceMs } = result;
  // The CPU plans no arena: ONNX Runtime has its own.
  const arena = arenaBytes === 0 ? null : arenaBytes;
  return {
    ...{ tracedCalls, calls, launches, nodesBefore, nodes, eagerPeakBytes },
    bytesInRegisters: bytesInRegisters === 0 ? null : bytesInRegisters,
    ...(repeatedCalls === 0 ? {} : { repeatedCalls }),
    ...(carriedCasts === 0 ? {} : { carriedCasts, carriedBytes }),
    ...(mergedProducts === 0 ? {} : { mergedProducts, operandBytesSaved }),
    ...(accumulatedProducts === 0 ? {} : { accumulatedProducts }),
    arenaBytes: arena,
    arenaRatio: arena && arena / eagerPeakBytes,
    compileMs: compilation.durationMs,
    ...result.compileTimes,
    hostMs: summarize(hostMs).median,
    deviceMs: summarize(deviceMs).median,
  };
}

/** Ops that became one, the most frequent first; null where nothing was fused. */
export function fusedTable(measurements: readonly CompileMeasurement[]): Table | null {
  const { name } = cellNames(measurements.map(({ cell }) => cell));
  const rows = measurements.flatMap(({ cell, result }) =>
    fusedGroups(result?.table ?? []).map((row): Row => ({ cell: name(cell), ...row })),
  );
  if (rows.length === 0) return null;
  return {
    kind: 'table',
    id: 'fused',
    title: 'What was fused',
    columns: [
      text('cell', 'Cell'),
      { ...text('members', 'Ops that became one'), emphasis: 'strong', overflow: 'shorten' },
      count('calls', 'Calls'),
      count('nodesBefore', 'Kernels before'),
      count('nodes', 'After'),
    ],
    rows,
  };
}

function fusedGroups(table: readonly CallGroup[]): Row[] {
  const fused = table.filter(({ members }) => members.length > 0);
  const sum = (group: readonly CallGroup[], value: (row: CallGroup) => number) =>
    group.reduce((total, row) => total + value(row), 0);
  return [...Map.groupBy(fused, ({ members }) => members.join(' + '))]
    .map(([members, group]) => ({
      members,
      calls: sum(group, ({ calls }) => calls),
      nodesBefore: sum(group, (row) => Math.max(row.calls * row.members.length, row.nodes ?? 0)),
      nodes: group.some(({ nodes }) => nodes === null) ? null : sum(group, ({ nodes }) => nodes!),
    }))
    .sort((a, b) => b.calls - a.calls);
}

/** Every call of one program, those alike in all layers as one row. */
export function callTable(table: readonly CallGroup[], id: string): Table {
  const rows = table.map(({ members, ...row }) => ({ ...row, members: members.join(' + ') }));
  const isFilled = ({ key }: Column) => rows.some((row) => Boolean(row[key as keyof typeof row]));
  const columns: Column[] = [
    text('range', 'Range'),
    { ...text('op', 'Op'), emphasis: 'strong', overflow: 'shorten' },
    { ...text('members', 'Ops in it'), overflow: 'shorten' },
    text('outputs', 'Outputs'),
    count('calls', 'Calls'),
    count('nodes', 'Kernels', 'Kernels, copies and fills.'),
  ];
  return {
    kind: 'table',
    id,
    title: 'Calls of the program',
    caption: 'In their order; calls that are alike in all layers are one row.',
    columns: columns.filter(isFilled),
    rows,
  };
}
