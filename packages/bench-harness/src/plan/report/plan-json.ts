import type { Plan } from '../plan.ts';

/** A plan for other programs: bytes, milliseconds, bytes a second and FLOP/s. */
export function planJson({ request, planner, layouts, measured }: Plan) {
  const { machine, links, calibration, interference } = planner;
  const { name, memoryBytes, ceilings } = machine;
  return {
    request,
    device: { name, memoryBytes, ceilings, links, calibration, interference },
    layouts: layouts.map((each) => {
      const { name, ...axes } = each.layout;
      if (each.obstacle !== null) return { name, axes, obstacle: each.obstacle };
      const { layout: _, ...step } = each.step;
      return { name, axes, ...step, bound: each.bound };
    }),
    measured: measured.map(({ measured: step, plan, calibratedBy }) => ({
      ...step,
      predicted: { stepMs: plan.stepMs, communicationMs: plan.communicationMs, peakBytes: plan.memory.peak },
      calibratedBy,
    })),
  };
}
