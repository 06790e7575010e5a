import type { Column, Row } from '@roofline/reports';

const shapeColumns: readonly Column[] = [
  { key: 'dtype', label: 'Dtype', kind: 'text' },
  {
    key: 'mask',
    label: 'Mask',
    kind: 'text',
    description: 'Keys that a query sees: up to its own place, or all.',
  },
  { key: 'batch', label: 'Batch', kind: 'text', align: 'right' },
  { key: 'heads', label: 'Heads', kind: 'text', align: 'right' },
  { key: 'headDimension', label: 'd', kind: 'text', align: 'right', description: 'Head dimension.' },
  { key: 'sequence', label: 'Sequence', kind: 'text', align: 'right' },
];

/** Those that stand in every table: the axes of its plots. */
const always: readonly string[] = ['headDimension', 'sequence'];

/** Columns of the shape of attention: dtype, batch and heads only where they are swept. */
export function attentionColumns(rows: readonly Row[]): Column[] {
  const isSwept = (key: string) => new Set(rows.map((row) => row[key])).size > 1;
  return shapeColumns.filter(({ key }) => always.includes(key) || isSwept(key));
}

/** What all rows share and no column tells: `All rows: causal, batch 8, float32.` */
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
