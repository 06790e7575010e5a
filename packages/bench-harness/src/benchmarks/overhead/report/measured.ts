import { ratioOfMedians, summarize } from '../../../measuring/statistics.ts';
import { workedOut, type Measurement } from '../../../report/measurement.ts';
import type { InstrumentCell, OpCell, OverheadCell } from '../parameters.ts';
import { isInstrumentCell } from '../parameters.ts';
import {
  instrumentNames,
  type InstrumentName,
  type InstrumentResult,
  type OpResult,
  type OverheadResult,
} from '../result.ts';

export type OverheadCells = readonly Measurement<OverheadCell, OverheadResult>[];
export type OpMeasurement = Measurement<OpCell, OpResult>;
/** One that has a result. */
export type MeasuredOp = OpMeasurement & { readonly result: OpResult };

export function opsIn(cells: OverheadCells): readonly OpMeasurement[] {
  return cells.filter(({ cell }) => !isInstrumentCell(cell)) as unknown as readonly OpMeasurement[];
}

export function measuredOps(cells: OverheadCells): readonly MeasuredOp[] {
  return opsIn(cells).filter((op): op is MeasuredOp => op.result !== null);
}

/** Host microseconds of a call. */
export const hostTime = workedOut(({ result }: MeasuredOp) => summarize(result.hostUs));

/** One instrument on one cell. */
export interface InstrumentMeasurement extends Measurement<InstrumentCell, InstrumentResult> {
  readonly instrument: InstrumentName;
}

/** One measurement for each instrument. */
export function instrumentsIn(cells: OverheadCells): readonly InstrumentMeasurement[] {
  const instrumented = cells.filter(({ cell }) => isInstrumentCell(cell));
  return instrumented.flatMap((each) =>
    instrumentNames.map((instrument) => ({ ...each, instrument }) as unknown as InstrumentMeasurement),
  );
}

/** Medians over the rounds. Null for a cell without a result. */
export const costOf = workedOut(({ result, instrument }: InstrumentMeasurement) => {
  if (result === null) return null;
  const { off } = result;
  const { deviceMs, wallMs, readOutMs, events, droppedRecords } = result[instrument];
  const median = (samples: readonly number[]) => summarize(samples).median;
  return {
    offMs: median(off.deviceMs),
    onMs: median(deviceMs),
    ratio: ratioOfMedians(deviceMs, off.deviceMs),
    offWallMs: median(off.wallMs),
    onWallMs: median(wallMs),
    events: median(events),
    droppedRecords,
    readOutMs: median(readOutMs),
  };
});
export type InstrumentCost = NonNullable<ReturnType<typeof costOf>>;
