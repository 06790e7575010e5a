import { formatDuration, formatPercent, type Block, type Report, type Section } from '@roofline/reports';
import type { CellRecord } from '../records/record.ts';
import { environmentFacts } from '../report/environment-facts.ts';
import {
  cellSlug,
  describeProfileCell,
  interpretProfile,
  lastStep,
  type ProfileMeasurement,
} from './interpret.ts';
import { attentionTable, kernelTable, matmulTable, rangeTable, stepTable } from './profile-tables.ts';
import { attentionShares, matmulShares, stepRow, topKernel } from './shares.ts';
import { stepTimeline } from './timeline.ts';

/** The report of profiles of one device and one set of settings. */
export function profileReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretProfile);
  const latest = records.reduce((a, b) => (a.startedAt > b.startedAt ? a : b));
  return {
    title: 'Kernel profile',
    subtitle: latest.environment.device.name,
    createdAt: latest.startedAt,
    summary: measurements.flatMap(profileSummary),
    environment: environmentFacts(latest),
    sections: [overviewSection(measurements), ...measurements.flatMap(cellSection)],
  };
}

function overviewSection(measurements: readonly ProfileMeasurement[]): Section {
  const attention = attentionTable(measurements);
  const dropped = measurements.flatMap(({ profiled }) => profiled?.result.steps ?? []);
  const droppedRecords = dropped.reduce((sum, step) => sum + step.droppedRecords, 0);
  const warning: Block = {
    kind: 'note',
    tone: 'warning',
    text: `${droppedRecords} records found no room and are missing: profile fewer steps at a time.`,
  };
  return {
    id: 'profile',
    title: 'Where the time goes',
    blocks: [
      stepTable(measurements),
      ...(droppedRecords > 0 ? [warning] : []),
      matmulTable(measurements),
      ...(attention ? [attention] : []),
    ],
  };
}

function cellSection(measurement: ProfileMeasurement): Section[] {
  const { cell, profiled } = measurement;
  if (profiled === null) return [];
  const slug = cellSlug(cell);
  return [
    {
      id: `profile-${slug}`,
      title: describeProfileCell(cell),
      blocks: [
        stepTimeline(
          lastStep(profiled.selected, profiled.result),
          `timeline-${slug}`,
          'Timeline of one step',
        ),
        kernelTable([measurement], `kernels-${slug}`),
        rangeTable([measurement], `ranges-${slug}`),
      ],
    },
  ];
}

/** The findings of one cell, one sentence each, computed from its records. */
export function profileSummary({ cell, profiled }: ProfileMeasurement): string[] {
  if (profiled === null) return [];
  const { spans, result } = profiled;
  const steps = result.steps.length;
  const name = describeProfileCell(cell);
  const top = (label: string, phases: readonly string[]) => {
    const kernel = topKernel(spans, phases, steps);
    if (kernel === null) return [];
    return [
      `the top kernel of ${label} is \`${kernel.name}\` with **${formatPercent(kernel.share)}** of its time`,
    ];
  };
  const hasBackward = spans.some(({ ranges }) => ranges[0]?.name === 'backward');
  const tops = [
    ...top('forward', ['forward']),
    ...(hasBackward ? top('forward and backward', ['forward', 'backward']) : []),
  ];
  const products = matmulShares(spans, steps).at(-1);
  const { kernelMs, wallMs, idleShare } = stepRow(spans, result);
  const attention = attentionShares(spans, steps).find(({ phase }) => phase === 'forward');
  return [
    `${name}: ${tops.join('; ')}.`,
    `Kernels take ${formatDuration(Number(kernelMs))} of a step of ${formatDuration(Number(wallMs))}; the device ` +
      `idles **${formatPercent(Number(idleShare))}** of it. Matrix products make up ` +
      `**${formatPercent(Number(products?.['matmulShare'] ?? 0))}** of the kernel time.`,
    ...(attention
      ? [
          `Inside attention, forward, softmax takes **${formatPercent(Number(attention['timeRatio']))}** of the ` +
            `time of the matrix products with ${formatPercent(Number(attention['flopsRatio']))} of their FLOPs.`,
        ]
      : []),
  ];
}
