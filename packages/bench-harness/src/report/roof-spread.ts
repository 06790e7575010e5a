import type { Column } from '@roofline/reports';
import { ceilingsSpread } from '../measuring/ceilings.ts';
import type { CellRecord } from '../records/record.ts';

/** Adds to the columns of shares of the roof how far the roof's own measurements lie apart, where the records know. */
export function withRoofSpread(columns: readonly Column[], records: readonly CellRecord[]): Column[] {
  const spread = Math.max(0, ...records.map(({ ceilings }) => (ceilings ? ceilingsSpread(ceilings) : 0)));
  return columns.map((column) => (column.emphasis === 'roof' && spread > 0 ? { ...column, spread } : column));
}
