import type { Column, Row } from '@roofline/reports';
import { countColumn, parameterColumn } from './parameter-titles.ts';

const parameterColumns: Column[] = [
  parameterColumn('size'),
  countColumn('context'),
  countColumn('batch'),
  parameterColumn('attention'),
  parameterColumn('execution'),
  parameterColumn('peerAttention'),
  parameterColumn('peerExecution'),
  parameterColumn('mode'),
  parameterColumn('dtype'),
];

/** Those that take a column only where they are swept. */
const captioned: readonly string[] = [
  'batch',
  'attention',
  'execution',
  'peerAttention',
  'peerExecution',
  'dtype',
];

/** Batch, dtype and the ways to run take a column only where they are swept; else the caption names them. */
export function configurationColumns(rows: readonly Row[]): Column[] {
  const isSwept = (key: string) => new Set(rows.map((row) => row[key])).size > 1;
  return parameterColumns.filter(({ key }) => !captioned.includes(key) || isSwept(key));
}

/** Whether it goes without saying: attention in ops of its own, and execution op by op. */
export function isUsual(value: Row[string]): boolean {
  return ['plain', 'eager'].includes(String(value ?? 'plain'));
}

/** What all rows share and no column says. */
export function sharedCaption(rows: readonly Row[]): string {
  const told = new Set(configurationColumns(rows).map(({ key }) => key));
  const [{ batch, attention, execution, peerAttention, peerExecution, dtype } = {}] = rows;
  const isTold = (key: string, value: Row[string]) => !told.has(key) && !isUsual(value);
  const words = [
    ...(told.has('batch') ? [] : [`batch ${batch}`]),
    ...(isTold('attention', attention) ? [`${attention} attention`] : []),
    ...(isTold('execution', execution) ? [String(execution)] : []),
    ...(isTold('peerAttention', peerAttention) ? [`PyTorch's ${peerAttention} attention`] : []),
    ...(isTold('peerExecution', peerExecution) ? [`PyTorch by ${peerExecution}`] : []),
    ...(told.has('dtype') ? [] : [dtype]),
  ];
  return words.length === 0 ? '' : `All rows: ${words.join(', ')}.`;
}
