import type { RooflinePlot, RooflinePoint } from '@roofline/reports';
import { ceilingLabel, deviceRoof } from '../../../report/device-roof.ts';
import { e2eDtypes, stepNames, type E2eDType } from '../parameters.ts';
import { phaseNames } from '../result.ts';
import { phasesMs, type StepMeasurement } from './measured.ts';
import { ofFullestMode } from './plots.ts';

/** For each dtype, the phases of the steps under the roof: none where the ceilings are not known. */
export function phaseRooflines(steps: readonly StepMeasurement[]): RooflinePlot[] {
  return e2eDtypes.flatMap((dtype) => phaseRoofline(steps, dtype));
}

function phaseRoofline(all: readonly StepMeasurement[], dtype: E2eDType): RooflinePlot[] {
  const steps = ofFullestMode(all.filter(({ cell }) => cell.dtype === dtype));
  const ceilings = steps[0]?.record.ceilings;
  if (!ceilings || ceilings.matmulFlopsPerSecond[dtype] === undefined) return [];
  const names = stepNames(steps);
  const points = phaseNames.flatMap((phase) =>
    steps.flatMap((step): RooflinePoint[] => {
      const [work, durationMs] = [step.result.work[phase], phasesMs(step)[phase]];
      if (work === undefined || durationMs === undefined) return [];
      const name = names.name(step.cell);
      return [{ name, category: phase, ...work, durationMs, ceiling: ceilingLabel(dtype) }];
    }),
  );
  return [
    {
      ...{ kind: 'roofline', id: `roofline-${dtype}`, title: `Phases of a step under the roof, ${dtype}` },
      caption:
        `A dot is a phase of a model's step (${names.shared}): its area is the median time. Bytes are the fewest that a ` +
        'phase must move, so its dot lies right of where its kernels do.',
      ...deviceRoof(ceilings, [dtype]),
      points,
    },
  ];
}
