import type { CellContext } from '../../runner/cell-task.ts';
import { measureInstruments } from './measure-instruments.ts';
import { measureOp } from './measure-op.ts';
import { isInstrumentCell, type OverheadCell, type OverheadSettings } from './parameters.ts';
import type { OverheadResult } from './result.ts';

/** Measures one cell, of either study. */
export function measureOverhead(
  cell: OverheadCell,
  context: CellContext<OverheadSettings>,
): Promise<OverheadResult> {
  return isInstrumentCell(cell) ? measureInstruments(cell, context) : measureOp(cell, context);
}
