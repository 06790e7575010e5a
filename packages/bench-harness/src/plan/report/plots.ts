import type { Plot, Series } from '@roofline/reports';
import { plotsOf } from '../../report/series.ts';
import { gpuCounts, planAt, type Scaling } from '../bound.ts';
import { possibleLayouts, type Plan } from '../plan.ts';
import type { StepPlan } from '../plan-step.ts';

const gpusAxis = { label: 'GPUs', scale: 'log' } as const;

/** A line for each layout, from where it can be divided so. */
function seriesByGpus(plan: Plan, scaling: Scaling, y: (step: StepPlan) => number): Series[] {
  const { planner, setting, request } = plan;
  return possibleLayouts(plan).flatMap(({ layout }) => {
    const points = gpuCounts(request.gpus).flatMap((gpus) => {
      const step = planAt(planner, layout, setting, gpus, scaling);
      const value = step && y(step);
      return value ? [{ x: gpus, y: value }] : [];
    });
    return points.length < 2 ? [] : [{ name: layout.name, points }];
  });
}

const tokensOf = ({ setting: { batch, context }, request: { gpus } }: Plan) =>
  (batch * context * gpus).toLocaleString('en');

/** Where communication takes over: this step divided over more and more GPUs. */
export function takeoverPlots(plan: Plan): Plot[] {
  return plotsOf({
    ...{
      id: 'takeover',
      title: `Communication over computation, a step of ${tokensOf(plan)} tokens`,
      marks: 'line',
    },
    caption: 'Time of all collectives over that of forward and backward; above 1 communication is the bound.',
    ...{ x: gpusAxis, y: { label: 'Communication / computation', scale: 'log' } },
    series: seriesByGpus(
      plan,
      'batch of all',
      ({ communicationMs, computation: { forwardMs, backwardMs } }) =>
        communicationMs / (forwardMs + backwardMs),
    ),
    references: [{ label: 'communication takes over', y: 1 }],
  });
}

/** The same step's time. */
export function timePlots(plan: Plan): Plot[] {
  return plotsOf({
    ...{ id: 'step-by-gpus', title: `Time of a step of ${tokensOf(plan)} tokens by GPUs`, marks: 'line' },
    ...{ x: gpusAxis, y: { label: 'Step', unit: 'ms', scale: 'log' } },
    series: seriesByGpus(plan, 'batch of all', ({ stepMs }) => stepMs),
  });
}

/** Utilization where each GPU keeps its batch. */
export function utilizationPlots(plan: Plan): Plot[] {
  const { batch, context } = plan.setting;
  return plotsOf({
    ...{
      id: 'utilization-by-gpus',
      title: `Utilization by GPUs, ${(batch * context).toLocaleString('en')} tokens for each`,
      marks: 'line',
    },
    caption:
      'Products of forward and backward over what the measured ceiling allows in the time of a step, whether it fits in memory or not.',
    ...{ x: gpusAxis, y: { label: 'Utilization', unit: '%', scale: 'linear' } },
    series: seriesByGpus(plan, 'batch of each', ({ utilization }) => 100 * utilization),
  });
}
