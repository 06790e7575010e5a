import type { Row, Table } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import type { Profiled, ProfileMeasurement } from '../interpret.ts';
import { busyUs, totalUs } from '../kernel-spans.ts';
import { cellColumn, milliseconds, cellsCaption, tableRows } from './table-parts.ts';

/** Of one profiled step, in milliseconds. */
interface StepKernelTime {
  /** The sum of all durations; kernels that overlap count both. */
  readonly sumMs: number;
  /** In which at least one kernel ran. */
  readonly busyMs: number;
  /** Between two events on the device around the step. */
  readonly deviceMs: number;
}

/** Whether the kernels account for the device time of the same step: ours, and PyTorch's where it ran. */
export function kernelTimeCheckTable(
  measurements: readonly ProfileMeasurement[],
  id = 'kernel-time-check',
): Table {
  return {
    kind: 'table',
    id,
    title: 'The check: kernel time over the device time of the same step',
    caption: `Medians over the profiled steps, whatever the selection.${cellsCaption(measurements)}`,
    columns: [
      cellColumn,
      { key: 'implementation', label: 'Of', kind: 'text', emphasis: 'strong' },
      milliseconds('sumMs', 'Kernels, sum', 'The sum of all durations; kernels that overlap count both.'),
      milliseconds('busyMs', 'Kernels, busy', 'The time in which at least one kernel ran.'),
      milliseconds('deviceMs', 'Device', 'Between two events on the device around the profiled step.'),
      { key: 'sumShare', label: 'Sum / device', kind: 'percent' },
      { key: 'busyShare', label: 'Busy / device', kind: 'percent', emphasis: 'strong' },
      milliseconds('plainMs', 'Device, not profiled', 'Of plain steps before a profiler was attached.'),
      {
        key: 'plainBusyShare',
        label: 'Busy / device, not profiled',
        kind: 'percent',
        description: 'What of a plain step the kernels fill; the rest the device waits for the host.',
      },
    ],
    rows: tableRows(measurements, ({ profiled }) => checkRows(profiled!)),
  };
}

/** The rows of one cell. */
export function checkRows({ spans, result, isOpByOp, peer }: Profiled): Row[] {
  const bySteps = Map.groupBy(spans, ({ step }) => step);
  const ours = result.profiledMs.map((deviceMs, step): StepKernelTime => {
    const ofStep = bySteps.get(step) ?? [];
    return { sumMs: totalUs(ofStep) / 1000, busyMs: busyUs(ofStep) / 1000, deviceMs };
  });
  const own = checkRow('Roofline', ours, result.plainMs);
  const rows = [isOpByOp ? { ...own, plainBusyShare: null } : own];
  if (peer === null) return rows;
  const theirs = peer.profile.steps.map(({ kernels, busyUs, deviceMs }): StepKernelTime => {
    const sumUs = kernels.durationUs.reduce((sum, durationUs) => sum + durationUs, 0);
    return { sumMs: sumUs / 1000, busyMs: busyUs / 1000, deviceMs };
  });
  return [...rows, checkRow('PyTorch', theirs, peer.profile.plainMs)];
}

function checkRow(
  implementation: string,
  steps: readonly StepKernelTime[],
  plainSamplesMs: readonly number[],
): Row {
  const median = (value: (step: StepKernelTime) => number) => summarize(steps.map(value)).median;
  const busyMs = median((step) => step.busyMs);
  const plainMs = summarize(plainSamplesMs).median;
  return {
    implementation,
    sumMs: median((step) => step.sumMs),
    busyMs,
    deviceMs: median((step) => step.deviceMs),
    sumShare: median(({ sumMs, deviceMs }) => sumMs / deviceMs),
    busyShare: median(({ busyMs, deviceMs }) => busyMs / deviceMs),
    plainMs,
    plainBusyShare: busyMs / plainMs,
  };
}
