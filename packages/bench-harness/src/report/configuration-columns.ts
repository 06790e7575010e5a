import type { Column, Row } from '@roofline/reports';

const parameterColumns: Column[] = [
  { key: 'size', label: 'Size', kind: 'text' },
  { key: 'context', label: 'Context', kind: 'text', align: 'right' },
  { key: 'batch', label: 'Batch', kind: 'text', align: 'right' },
  { key: 'attention', label: 'Attention', kind: 'text' },
  { key: 'execution', label: 'Execution', kind: 'text' },
  { key: 'peerAttention', label: "PyTorch's attention", kind: 'text' },
  { key: 'peerExecution', label: "PyTorch's execution", kind: 'text' },
  { key: 'mode', label: 'Mode', kind: 'text' },
  { key: 'dtype', label: 'Dtype', kind: 'text' },
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

/** Batch, dtype and the ways to run take a column only where they are swept; else the caption tells them. */
export function configurationColumns(rows: readonly Row[]): Column[] {
  const isSwept = (key: string) => new Set(rows.map((row) => row[key])).size > 1;
  return parameterColumns.filter(({ key }) => !captioned.includes(key) || isSwept(key));
}

/** What all rows share and no column tells. */
export function sharedCaption(rows: readonly Row[]): string {
  const told = new Set(configurationColumns(rows).map(({ key }) => key));
  const [{ batch, attention, execution, peerAttention, peerExecution, dtype } = {}] = rows;
  const isUsual = (value: Row[string]) => ['plain', 'eager'].includes(String(value ?? 'plain'));
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
