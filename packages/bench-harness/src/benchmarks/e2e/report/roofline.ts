import type { RooflinePlot, RooflinePoint } from '@roofline/reports';
import { cellNames } from '../../../report/cell-names.ts';
import { ceilingLabel, deviceRoof } from '../../../report/device-roof.ts';
import { modes, e2eDtypes, type E2eDType } from '../parameters.ts';
import { phaseNames } from '../result.ts';
import type { E2eMeasurement } from './interpret.ts';

/** For each dtype, the phases of the steps under the roof: none where the ceilings are not known. */
export function phaseRooflines(measurements: readonly E2eMeasurement[]): RooflinePlot[] {
  return e2eDtypes.flatMap((dtype) => phaseRoofline(ofFullestMode(measurements, dtype), dtype) ?? []);
}

/** Those of the mode with the most phases that was measured: the others repeat them. */
function ofFullestMode(measurements: readonly E2eMeasurement[], dtype: E2eDType): E2eMeasurement[] {
  const measured = measurements.filter((each) => each.cell.dtype === dtype && each.measured !== null);
  const mode = modes.findLast((name) => measured.some(({ cell }) => cell.mode === name));
  return measured.filter(({ cell }) => cell.mode === mode);
}

function phaseRoofline(measurements: readonly E2eMeasurement[], dtype: E2eDType): RooflinePlot | null {
  const ceilings = measurements[0]?.record.ceilings;
  if (!ceilings || ceilings.matmulFlopsPerSecond[dtype] === undefined) return null;
  const cells = measurements.map(({ cell }) => cell);
  const names = cellNames(cells);
  const points = phaseNames.flatMap((phase) =>
    measurements.flatMap(({ cell, measured }): RooflinePoint[] => {
      const work = measured!.result.work[phase];
      const durationMs = measured!.phasesMs[phase];
      if (work === undefined || durationMs === undefined) return [];
      return [{ name: names.name(cell), category: phase, ...work, durationMs, ceiling: ceilingLabel(dtype) }];
    }),
  );
  return {
    kind: 'roofline',
    id: `roofline-${dtype}`,
    title: `Phases of a step under the roof, ${dtype}`,
    caption:
      `A dot is a phase of a model's step (${names.shared}): its area is the median time. Bytes are the fewest that a ` +
      'phase must move, so its dot lies right of where its kernels do.',
    ...deviceRoof(ceilings, [dtype]),
    points,
  };
}
