import type { Column, Row } from '@roofline/reports';
import { countColumn, parameterColumn } from './parameter-titles.ts';

const shapeColumns: readonly Column[] = [
  parameterColumn('dtype'),
  { ...parameterColumn('mask'), description: 'Keys that a query sees: up to its own place, or all.' },
  countColumn('batch'),
  countColumn('heads'),
  { ...countColumn('headDimension'), description: 'Head dimension.' },
  countColumn('sequence'),
];

/** Those that are in every table: the axes of its plots. */
const always: readonly string[] = ['headDimension', 'sequence'];

/** Columns of the shape of attention: dtype, batch and heads only where they are swept. */
export function attentionColumns(rows: readonly Row[]): Column[] {
  const isSwept = (key: string) => new Set(rows.map((row) => row[key])).size > 1;
  return shapeColumns.filter(({ key }) => always.includes(key) || isSwept(key));
}

/** What all rows share and no column says: `All rows: causal, batch 8, float32.` */
export function attentionCaption(rows: readonly Row[]): string {
  const told = new Set(attentionColumns(rows).map(({ key }) => key));
  const [{ batch, heads, dtype, mask } = {}] = rows;
  const words = [
    ...(told.has('mask') ? [] : [String(mask ?? 'causal')]),
    ...(told.has('batch') || batch === undefined ? [] : [`batch ${batch}`]),
    ...(told.has('heads') || heads === undefined || heads === 1 ? [] : [`${heads} heads`]),
    ...(told.has('dtype') || dtype === undefined ? [] : [String(dtype)]),
  ];
  return `All rows: ${words.join(', ')}.`;
}
