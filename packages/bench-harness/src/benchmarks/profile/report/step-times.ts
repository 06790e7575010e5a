import type { Table } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import { column } from '../../../report/standard-columns.ts';
import type { Profiled, ProfiledPeer } from '../interpret.ts';
import { busyUs, totalUs } from '../kernel-spans.ts';
import { perStep, profileTables, type Profiles } from './profile-table.ts';

/** One profiled step, in milliseconds. */
interface StepTime {
  /** The sum of all durations; kernels that overlap count both. */
  readonly sumMs: number;
  /** In which at least one kernel ran: shorter than the sum where branches of a graph run at the same time. */
  readonly busyMs: number;
  /** Between two events on the device around the step. */
  readonly deviceMs: number;
}

/** What of a plain step the profiled ones say; null where plain steps ran other kernels. */
function timesOf(steps: readonly StepTime[], plainSteps: readonly number[], runsOthers = false) {
  const median = (value: (step: StepTime) => number) => summarize(steps.map(value)).median;
  const [busyMs, deviceMs] = [median((step) => step.busyMs), median((step) => step.deviceMs)];
  const plainMs = summarize(plainSteps).median;
  return {
    ...{ kernelMs: median(({ sumMs }) => sumMs), busyMs, deviceMs, plainMs },
    sumShare: median((step) => step.sumMs / step.deviceMs),
    busyShare: median((step) => step.busyMs / step.deviceMs),
    // Profiled, the device also waits for the profiler.
    idleShare: runsOthers ? null : Math.max(0, 1 - busyMs / plainMs),
    overhead: runsOthers ? null : deviceMs / plainMs - 1,
  };
}

/** The time of a step: kernels, the device between two events, the host's clock; and what profiling costs. */
export function stepTimes({ spans, result, isOpByOp }: Pick<Profiled, 'spans' | 'result' | 'isOpByOp'>) {
  const { steps, profiledMs, plainMs } = result;
  const bySteps = Map.groupBy(spans, ({ step }) => step);
  const times = profiledMs.map((deviceMs, step): StepTime => {
    const ofStep = bySteps.get(step) ?? [];
    return { sumMs: totalUs(ofStep) / 1000, busyMs: busyUs(ofStep) / 1000, deviceMs };
  });
  return {
    ...timesOf(times, plainMs, isOpByOp),
    kernels: spans.length / steps.length,
    wallMs: summarize(steps.map(({ wallUs }) => wallUs / 1000)).median,
    droppedRecords: steps.reduce((sum, { droppedRecords }) => sum + droppedRecords, 0),
  };
}

function peerStepTimes({ kernels: all, profile: { steps, plainMs } }: ProfiledPeer) {
  const times = steps.map(({ kernels, busyUs, deviceMs }): StepTime => {
    const sumUs = kernels.durationUs.reduce((sum, durationUs) => sum + durationUs, 0);
    return { sumMs: sumUs / 1000, busyMs: busyUs / 1000, deviceMs };
  });
  return { ...timesOf(times, plainMs), kernels: all.length / steps.length };
}

type SideTimes = ReturnType<typeof peerStepTimes> & Partial<ReturnType<typeof stepTimes>>;
type Side = SideTimes & { readonly implementation: 'Roofline' | 'PyTorch' };

/** Whether the kernels account for the device time of their steps, and what of a plain step they fill: ours, and PyTorch's. */
export function stepTables(profiles: Profiles): Table[] {
  return profileTables<Side>(
    {
      ...{ id: 'steps', title: 'Kernel time against wall time', namesOne: true, saysShared: true },
      caption:
        'Medians of a step, whatever the selection. The cost of profiling is that of these few steps; `roofline overhead` ' +
        "measures it over many, by the host's clock.",
      columns: [
        column.text<Side>('implementation', 'Of', {
          ...{
            emphasis: 'strong',
            shown: (sides: readonly Side[]) => sides.some((side) => side.implementation === 'PyTorch'),
          },
        }),
        column.number('kernels', 'Kernels', perStep),
        column.ms('kernelMs', 'Kernel time', {
          description: 'The sum of all kernels, copies and fills; those that overlap count both.',
        }),
        column.ms('busyMs', 'Busy', { description: 'The time in which at least one kernel ran.' }),
        column.ms('deviceMs', 'Device', {
          description: 'Between two events on the device around the step.',
        }),
        column.percent('sumShare', 'Kernel time / device'),
        column.percent('busyShare', 'Busy / device', { emphasis: 'strong' }),
        column.ms('wallMs', 'Wall clock', {
          description: "By the host's clock, from an idle device to an idle device.",
        }),
        column.ms('plainMs', 'Device, not profiled', {
          description: 'Of plain steps before a profiler was attached.',
        }),
        column.percent('idleShare', 'Idle', {
          description: 'The share of the time of a plain step, on the device, in which no kernel runs.',
        }),
        column.percent('overhead', 'Cost of profiling', {
          description: 'Profiled over plain device time, less one.',
        }),
        column.number('droppedRecords', 'Dropped records'),
      ],
    },
    profiles,
    (profiled) => [
      { implementation: 'Roofline', ...stepTimes(profiled) },
      ...(profiled.peer ? [{ implementation: 'PyTorch' as const, ...peerStepTimes(profiled.peer) }] : []),
    ],
  );
}
