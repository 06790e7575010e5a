import { canonicalJson } from '../../../records/json.ts';
import type { CellRecord } from '../../../records/record.ts';
import { summarize } from '../../../measuring/statistics.ts';
import {
  precisionCell,
  precisionResult,
  type PrecisionCell,
  type PrecisionResult,
  type ResultOf,
} from '../parameters.ts';

/** A cell and, where it was measured, its result. */
export interface Measurement<S extends PrecisionCell['study']> {
  readonly cell: Extract<PrecisionCell, { study: S }>;
  readonly record: CellRecord;
  readonly result: ResultOf<S> | null;
}

/** The records of one study, in their order. */
export function measurementsOf<S extends PrecisionCell['study']>(
  study: S,
  records: readonly CellRecord[],
): Measurement<S>[] {
  return records.flatMap((record) => {
    const cell = precisionCell.parse(record.parameters);
    if (cell.study !== study) return [];
    const result: PrecisionResult | null =
      record.status === 'ok' ? precisionResult.parse(record.result) : null;
    return [{ cell, record, result } as Measurement<S>];
  });
}

export interface Speed extends Measurement<'speed'> {
  readonly medianMs: number | null;
  /** The median in float32 over this one. */
  readonly speedUp: number | null;
}

/** A cell, or its row. */
type Workload = Readonly<Record<string, unknown>>;

/** Those of the parameters that are not the same in all cells. */
export function sweptOf(cells: readonly Workload[], keys: readonly string[]): string[] {
  return keys.filter((key) => new Set(cells.map((cell) => cell[key])).size > 1);
}

/** The same in words, for the name of a cell: `batch 4` where batches are swept. */
export function sweptWords(
  cells: readonly Workload[],
  keys: readonly string[],
): (cell: Workload) => string[] {
  const swept = sweptOf(cells, keys);
  return (cell) => swept.map((key) => `${key} ${String(cell[key])}`);
}

/** The timed cells, each next to the same in float32. */
export function speedsOf(records: readonly CellRecord[]): Speed[] {
  const measurements = measurementsOf('speed', records);
  const median = ({ result }: Measurement<'speed'>) => result && summarize(result.deviceMs).median;
  const workload = ({ cell }: Measurement<'speed'>) => canonicalJson({ ...cell, dtype: 'float32' });
  const inFloat32 = new Map(
    measurements.filter(({ cell }) => cell.dtype === 'float32').map((each) => [workload(each), median(each)]),
  );
  return measurements.map((each) => {
    const [own, reference] = [median(each), inFloat32.get(workload(each))];
    return { ...each, medianMs: own, speedUp: own && reference ? reference / own : null };
  });
}
