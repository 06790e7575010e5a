import type { Table } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import { column } from '../../../report/standard-columns.ts';
import type { Profiled } from '../interpret.ts';
import { busyUs, totalUs } from '../kernel-spans.ts';
import { profileTables, type Profiles } from './profile-table.ts';

/** Of one profiled step, in milliseconds. */
interface StepKernelTime {
  /** The sum of all durations; kernels that overlap count both. */
  readonly sumMs: number;
  /** In which at least one kernel ran. */
  readonly busyMs: number;
  /** Between two events on the device around the step. */
  readonly deviceMs: number;
}

/** One side's steps. */
interface KernelTimes {
  readonly implementation: string;
  readonly steps: readonly StepKernelTime[];
  /** Of plain steps, which may have run other kernels. */
  readonly plainMs: number;
  readonly runsOthers: boolean;
}

const median = ({ steps }: KernelTimes, value: (step: StepKernelTime) => number) =>
  summarize(steps.map(value)).median;

/** Whether the kernels account for the device time of the same step: ours, and PyTorch's where it ran. */
export function kernelTimeCheckTables(profiles: Profiles): Table[] {
  const title = 'The check: kernel time over the device time of the same step';
  const caption = 'Medians over the profiled steps, whatever the selection.';
  return profileTables<KernelTimes>(
    {
      ...{ id: 'kernel-time-check', title, caption, namesOne: true, saysShared: true },
      columns: [
        column.text('implementation', 'Of', { emphasis: 'strong' }),
        column.ms('sumMs', 'Kernels, sum', (side) => median(side, ({ sumMs }) => sumMs), {
          description: 'The sum of all durations; kernels that overlap count both.',
        }),
        column.ms('busyMs', 'Kernels, busy', (side) => median(side, ({ busyMs }) => busyMs), {
          description: 'The time in which at least one kernel ran.',
        }),
        column.ms('deviceMs', 'Device', (side) => median(side, ({ deviceMs }) => deviceMs), {
          description: 'Between two events on the device around the profiled step.',
        }),
        column.percent('sumShare', 'Sum / device', (side) =>
          median(side, ({ sumMs, deviceMs }) => sumMs / deviceMs),
        ),
        column.percent(
          'busyShare',
          'Busy / device',
          (side) => median(side, ({ busyMs, deviceMs }) => busyMs / deviceMs),
          { emphasis: 'strong' },
        ),
        column.ms('plainMs', 'Device, not profiled', {
          description: 'Of plain steps before a profiler was attached.',
        }),
        column.percent(
          'plainBusyShare',
          'Busy / device, not profiled',
          (side) => (side.runsOthers ? null : median(side, ({ busyMs }) => busyMs) / side.plainMs),
          {
            description: 'What of a plain step the kernels fill; the rest the device waits for the host.',
          },
        ),
      ],
    },
    profiles,
    kernelTimes,
  );
}

/** Of each side of a cell. */
function kernelTimes({ spans, result, isOpByOp, peer }: Profiled): KernelTimes[] {
  const bySteps = Map.groupBy(spans, ({ step }) => step);
  const steps = result.profiledMs.map((deviceMs, step): StepKernelTime => {
    const ofStep = bySteps.get(step) ?? [];
    return { sumMs: totalUs(ofStep) / 1000, busyMs: busyUs(ofStep) / 1000, deviceMs };
  });
  const plainMs = summarize(result.plainMs).median;
  const own = { implementation: 'Roofline', steps, plainMs, runsOthers: isOpByOp };
  if (peer === null) return [own];
  const theirs = peer.profile.steps.map(({ kernels, busyUs, deviceMs }): StepKernelTime => {
    const sumUs = kernels.durationUs.reduce((sum, durationUs) => sum + durationUs, 0);
    return { sumMs: sumUs / 1000, busyMs: busyUs / 1000, deviceMs };
  });
  const theirPlainMs = summarize(peer.profile.plainMs).median;
  return [own, { implementation: 'PyTorch', steps: theirs, plainMs: theirPlainMs, runsOthers: false }];
}
