import type { Column, Row } from '@roofline/reports';

const parameterColumns: Column[] = [
  { key: 'size', label: 'Size', kind: 'text' },
  { key: 'context', label: 'Context', kind: 'text', align: 'right' },
  { key: 'batch', label: 'Batch', kind: 'text', align: 'right' },
  { key: 'mode', label: 'Mode', kind: 'text' },
  { key: 'dtype', label: 'Dtype', kind: 'text' },
];

/** Batch and dtype take a column only where they are swept; else the caption tells them. */
export function configurationColumns(rows: readonly Row[]): Column[] {
  const isSwept = (key: string) => new Set(rows.map((row) => row[key])).size > 1;
  return parameterColumns.filter(({ key }) => (key !== 'batch' && key !== 'dtype') || isSwept(key));
}

/** What all rows share and no column tells. */
export function sharedCaption(rows: readonly Row[]): string {
  const told = new Set(configurationColumns(rows).map(({ key }) => key));
  const [{ batch, dtype } = {}] = rows;
  const words = [...(told.has('batch') ? [] : [`batch ${batch}`]), ...(told.has('dtype') ? [] : [dtype])];
  return words.length === 0 ? '' : `All rows: ${words.join(', ')}.`;
}
