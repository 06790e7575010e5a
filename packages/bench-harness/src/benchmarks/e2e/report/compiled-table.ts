import type { Column, Row, Table } from '@roofline/reports';
import { canonicalJson } from '../../../records/json.ts';
import { configurationColumns, sharedCaption } from '../../../report/configuration-columns.ts';
import { ratioOfMedians } from '../../../measuring/statistics.ts';
import { cellRow } from '../../../report/cell-row.ts';
import type { E2eMeasurement, Measured } from './interpret.ts';

type MeasuredCell = E2eMeasurement & { readonly measured: Measured };

const columns: Column[] = [
  { key: 'eagerMs', label: 'Eager', unit: 'ms', kind: 'duration', description: 'Median of the device time.' },
  { key: 'compiledMs', label: 'Compiled', unit: 'ms', kind: 'duration', emphasis: 'strong' },
  {
    key: 'ratio',
    label: 'Compiled / eager',
    kind: 'ratio',
    emphasis: 'strong',
    description: 'Of the medians: below 1 is faster compiled.',
  },
  {
    key: 'compileMs',
    label: 'Compiling',
    unit: 'ms',
    kind: 'duration',
    description: 'By the wall clock: the steps until the first that ran as a program, that one included.',
  },
  {
    key: 'paysAfter',
    label: 'Pays after',
    unit: 'steps',
    kind: 'number',
    description: 'Steps after which compiling has saved more wall time than it took.',
  },
  {
    key: 'memoryRatio',
    label: 'Memory ratio',
    kind: 'ratio',
    description: 'Of the peaks, compiled over eager.',
  },
];

/** Compiled steps beside eager ones of the same cell; null where no cell was measured both ways. */
export function compiledTable(measurements: readonly E2eMeasurement[]): Table | null {
  const measured = measurements.filter((each): each is MeasuredCell => each.measured !== null);
  const work = ({ cell }: MeasuredCell) => canonicalJson({ ...cell, execution: 'eager' });
  const eager = new Map(
    measured.filter(({ cell }) => cell.execution === 'eager').map((each) => [work(each), each]),
  );
  const rows = measured
    .filter(({ cell }) => cell.execution === 'compiled')
    .flatMap((each) => {
      const other = eager.get(work(each));
      return other ? [rowOf(each, other)] : [];
    });
  if (rows.length === 0) return null;
  return {
    kind: 'table',
    id: 'compiled-beside-eager',
    title: 'Compiled beside eager',
    caption: sharedCaption(rows),
    columns: [...configurationColumns(rows), ...columns],
    rows,
  };
}

function rowOf({ cell, record, measured: compiled }: MeasuredCell, { measured: eager }: MeasuredCell): Row {
  const { compilation, memory } = compiled.result;
  const savedMs = eager.wall.median - compiled.wall.median;
  const { execution: _, ...parameters } = cellRow(cell, record);
  return {
    ...parameters,
    eagerMs: eager.device.median,
    compiledMs: compiled.device.median,
    ratio: ratioOfMedians(compiled.result.deviceMs, eager.result.deviceMs).ratio,
    compileMs: compilation?.durationMs ?? null,
    paysAfter: compilation && savedMs > 0 ? Math.ceil(compilation.durationMs / savedMs) : null,
    memoryRatio: memory.peakAllocatedBytes / eager.result.memory.peakAllocatedBytes,
  };
}
