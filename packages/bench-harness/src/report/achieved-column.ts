import type { Column, Row } from '@roofline/reports';

/** In TFLOP/s, or in GFLOP/s where no row reaches one of them. `description` says which FLOPs over which time. */
export function achievedColumn(rows: readonly Row[], description: string): Column {
  const inTera = rows.some((row) => Number(row['teraflopsPerSecond'] ?? 0) >= 1);
  return {
    key: inTera ? 'teraflopsPerSecond' : 'gigaflopsPerSecond',
    label: 'Achieved',
    unit: inTera ? 'TFLOP/s' : 'GFLOP/s',
    kind: 'number',
    digits: 3,
    detail: true,
    description,
  };
}
