import type { Column, Row } from '@roofline/reports';
import { sizeInWords } from '../benchmarks/allreduce/report/words.ts';
import { plainParameters } from './cell-row.ts';
import type { CellRecord } from '../records/record.ts';
import { isUsual } from './configuration-columns.ts';
import { parameterColumn } from './parameter-titles.ts';

/** Ways to run, which are named where they are not the usual ones. */
const ways: readonly string[] = ['attention', 'execution', 'peerAttention', 'peerExecution'];

/** The parameters of a pair of cells; what records of an older version lack, those of a newer one have. */
export function parameterValues({ before, after }: { before: CellRecord; after: CellRecord }): Row {
  const { bytes, ...plain } = { ...plainParameters(after), ...plainParameters(before) };
  // As the table of collectives has them.
  return typeof bytes === 'number' ? { size: sizeInWords(bytes), bytes, ...plain } : { ...plain };
}

/** The columns of the parameters, titled as in the tables of reports. */
export function parameterColumns(rows: readonly Row[]): Column[] {
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  names.delete('bytes');
  const isTold = (name: string) => !ways.includes(name) || rows.some((row) => !isUsual(row[name]));
  return [...names].filter(isTold).map((key) => parameterColumn(key));
}
