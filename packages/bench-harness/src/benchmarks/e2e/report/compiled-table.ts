import type { Row, Table } from '@roofline/reports';
import { canonicalJson } from '../../../records/json.ts';
import { configurationColumns, sharedCaption } from '../../../report/configuration-columns.ts';
import { type TimedWay, besideEager, besideEagerColumns } from '../../../report/beside-eager.ts';
import { cellRow } from '../../../report/cell-row.ts';
import type { E2eMeasurement, Measured } from './interpret.ts';

type MeasuredCell = E2eMeasurement & { readonly measured: Measured };

/** Compiled steps compared with eager ones of the same cell; null where no cell was measured both ways. */
export function compiledTable(measurements: readonly E2eMeasurement[]): Table | null {
  const measured = measurements.filter((each): each is MeasuredCell => each.measured !== null);
  const work = ({ cell }: MeasuredCell) => canonicalJson({ ...cell, execution: 'eager' });
  const eager = new Map(
    measured.filter(({ cell }) => cell.execution === 'eager').map((each) => [work(each), each]),
  );
  const compiled = measured.filter(({ cell }) => cell.execution !== 'eager');
  // The title says it where none is autotuned.
  const saysExecution = compiled.some(({ cell }) => cell.execution === 'autotuned');
  const rows = compiled.flatMap((each) => {
    const other = eager.get(work(each));
    return other ? [rowOf(each, other, saysExecution)] : [];
  });
  if (rows.length === 0) return null;
  const isInTurn = compiled.some(({ measured: { result } }) => result.eagerInTurn !== null);
  return {
    kind: 'table',
    id: 'compiled-beside-eager',
    title: 'Compiled beside eager',
    caption: `${isInTurn ? 'Steps of both in turn, of one model. ' : ''}${sharedCaption(rows)}`,
    columns: [...configurationColumns(rows), ...besideEagerColumns],
    rows,
  };
}

function rowOf(
  { cell, record, measured: compiled }: MeasuredCell,
  { measured: eager }: MeasuredCell,
  saysExecution: boolean,
): Row {
  const { execution, ...parameters } = cellRow(cell, record);
  const way = ({ result: { deviceMs, wallMs, memory } }: Measured): TimedWay => ({
    ...{ deviceMs, wallMs },
    peakBytes: memory.peakAllocatedBytes,
  });
  return {
    ...parameters,
    ...(saysExecution && { execution }),
    ...besideEager(
      { ...way(eager), ...compiled.result.eagerInTurn },
      way(compiled),
      compiled.result.compilation,
    ),
  };
}
