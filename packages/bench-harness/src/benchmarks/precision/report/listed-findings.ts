import {
  formatDuration,
  formatNumber,
  formatPercent,
  formatRatio,
  type Row,
  type Table,
} from '@roofline/reports';
import type { Finding } from '../../../report/findings-table.ts';
import { cellWords } from '../../../parameters/cell-names.ts';
import { lossParameters } from '../parameters.ts';
import { cellsOf, measuredIn, modelNames, speedsOf, type PrecisionCells } from './measured.ts';
import { accumulationTable, accuracyTable, dtypeTable, lossTable, speedTable } from './tables.ts';

type Cell = PrecisionCells[number];

/** All that was found, study by study, one entry a row of its table; of what was not measured, one that says so. */
export function listFindings(cells: PrecisionCells): Finding[] {
  return [
    ...unmeasured(cells),
    ...sums(cells),
    ...dtypes(cells),
    ...norms(cells),
    ...accuracies(cells),
    ...losses(cells),
    ...speeds(cells),
  ];
}

const rowsOf = ([table]: readonly Table[]): readonly Row[] => table?.rows ?? [];

function entry(each: Pick<Cell, 'record'>, finding: Omit<Finding, 'record' | 'cell'>): Finding {
  return { record: each.record, cell: {}, ...finding };
}

/** Tables of these studies have no rows of what was not measured. */
function unmeasured(cells: PrecisionCells): Finding[] {
  return cells.flatMap((each) => {
    const { cell, result } = each;
    if (result !== null || !isOfParts(cell)) return [];
    const dtype = cell.study === 'accumulation' ? {} : { dtype: cell.dtype };
    return [entry(each, { study: cell.study, what: 'all', ...dtype, finding: null, row: {} })];
  });
}

type OfParts = 'accumulation' | 'dtypes' | 'norms';

function isOfParts(cell: Cell['cell']): cell is Extract<Cell['cell'], { study: OfParts }> {
  return cell.study === 'accumulation' || cell.study === 'dtypes' || cell.study === 'norms';
}

function sums(cells: PrecisionCells): Finding[] {
  const [first] = cellsOf('accumulation', cells);
  return rowsOf(accumulationTable(cells)).map((row) => {
    const what = `${String(row['experiment'])} on ${String(row['device'])}`;
    return entry(first!, { study: 'accumulation', what, finding: String(row['sum']), row });
  });
}

function dtypes(cells: PrecisionCells): Finding[] {
  const [table] = dtypeTable(cells);
  const [first] = cellsOf('dtypes', cells);
  const precisions = table?.columns.slice(1).map(({ key }) => key) ?? [];
  return rowsOf(table ? [table] : []).flatMap((row) =>
    precisions.map((dtype) =>
      entry(first!, {
        ...{ study: 'dtypes', what: String(row['tensor']), dtype },
        ...{ finding: String(row[dtype]), row: {} },
      }),
    ),
  );
}

function norms(cells: PrecisionCells): Finding[] {
  return measuredIn('norms', cells).flatMap((each) =>
    each.result.errors.map((row) => {
      const finding = Number.isNaN(row.offBy) ? 'overflows' : `off by ${formatPercent(row.offBy)}`;
      const what = `${row.norm}, ${row.part}, inputs of ${formatNumber(row.magnitude, 1)}`;
      return entry(each, { study: 'norms', what, dtype: each.cell.dtype, finding, row: { ...row } });
    }),
  );
}

function accuracies(cells: PrecisionCells): Finding[] {
  const all = cellsOf('accuracy', cells);
  const names = modelNames(all);
  const rows = rowsOf(accuracyTable(cells));
  return all.map((each, index) =>
    entry(each, {
      ...{ study: 'accuracy', what: `${names.name(each.cell)}, gradients`, dtype: each.cell.dtype },
      finding: `${formatRatio(Number(rows[index]!['gradientRatio']))} PyTorch's error`,
      row: rows[index]!,
    }),
  );
}

function losses(cells: PrecisionCells): Finding[] {
  const rows = rowsOf(lossTable(cells));
  return cellsOf('loss', cells).map((each, index) => {
    const row = rows[index]!;
    const left = Number(row['skipped']) > 0 ? `, ${row['skipped']} skipped` : '';
    return entry(each, {
      study: 'loss',
      what: each.result ? `${row['steps']} steps` : 'all steps',
      dtype: cellWords(lossParameters, each.cell).join(', '),
      finding: `${Number(row['first']).toFixed(4)} to ${Number(row['last']).toFixed(4)}${left}`,
      row,
    });
  });
}

function speeds(cells: PrecisionCells): Finding[] {
  const all = speedsOf(cells);
  const names = modelNames(all, ['mode']);
  const rows = rowsOf(speedTable(cells));
  return all.map((each, index) => {
    const { speedUp, time, cell } = each;
    const faster = speedUp === null ? '' : `, ${formatRatio(speedUp)} the speed`;
    const finding = time && `${formatDuration(time.median)}${faster}`;
    const what = names.name(cell);
    return entry(each, { study: 'speed', what, dtype: cell.dtype, finding, row: rows[index]! });
  });
}
