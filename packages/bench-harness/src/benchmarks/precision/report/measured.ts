import { measuredOf, pairsBy, type Measured, type Measurement } from '../../../report/measurement.ts';
import { stepNames, type E2eCell } from '../../e2e/parameters.ts';
import { peerOf } from '../../e2e/report/measured.ts';
import type { PrecisionCell, PrecisionResult, ResultOf } from '../parameters.ts';

export type PrecisionCells = readonly Measurement<PrecisionCell, PrecisionResult>[];

type Study = PrecisionCell['study'];
export type OfStudy<S extends Study> = Measurement<Extract<PrecisionCell, { study: S }>, ResultOf<S>>;
export type MeasuredOf<S extends Study> = Measured<Extract<PrecisionCell, { study: S }>, ResultOf<S>>;

/** The cells of one study, in their order. */
export function cellsOf<S extends Study>(study: S, cells: PrecisionCells): readonly OfStudy<S>[] {
  return cells.filter(({ cell }) => cell.study === study) as unknown as readonly OfStudy<S>[];
}

export function measuredIn<S extends Study>(study: S, cells: PrecisionCells): readonly MeasuredOf<S>[] {
  return measuredOf(cellsOf(study, cells));
}

/** A timed cell next to the same in float32. */
export type Speed = MeasuredOf<'speed'> & {
  /** The median in float32 over this one; null where that was not measured. */
  readonly speedUp: number | null;
  readonly peer: ReturnType<typeof peerOf>;
};

/** All timed cells; of those without a result nothing is known but the cell. */
export function speedsOf(cells: PrecisionCells): readonly Speed[] {
  const speeds = cellsOf('speed', cells);
  const gains = new Map(
    pairsBy(speeds, 'dtype', 'float32').map(({ cell, beside }) => [
      cell.record,
      beside.time!.median / cell.time!.median,
    ]),
  );
  return speeds.map((each) => {
    const measured = each as MeasuredOf<'speed'>;
    const isReference = each.result !== null && each.cell.dtype === 'float32';
    const speedUp = gains.get(each.record) ?? (isReference ? 1 : null);
    return { ...measured, speedUp, peer: each.result && peerOf(measured) };
  });
}

/** What names cells of a study: the model, and what else is swept of it. */
export function modelNames(
  cells: readonly { readonly cell: E2eCell }[],
  more: readonly (keyof E2eCell)[] = [],
) {
  return stepNames(cells, ['size', 'context', 'batch', 'attention', 'execution', ...more]);
}
