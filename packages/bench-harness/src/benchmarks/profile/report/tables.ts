import type { Table } from '@roofline/reports';
import type { ColumnOf } from '../../../report/declared-table.ts';
import { column } from '../../../report/standard-columns.ts';
import { settingsOf } from '../interpret.ts';
import { perStep, phaseColumn, profileTable, profileTables, type Profiles } from './profile-table.ts';
import { attentionShares, matmulShares, topsOfPhases } from './shares.ts';
import {
  kernelSummary,
  rangeSummary,
  type ReachedGroup,
  type Durations,
  type KernelGroup,
} from './summaries.ts';

const filled = { shown: 'filled' } as const;
const reachedColumns: readonly ColumnOf<ReachedGroup>[] = [
  column.number('teraflopsPerSecond', 'Achieved', {
    ...{ ...filled, unit: 'TFLOP/s', digits: 3 },
    description: 'The FLOPs of the ops over the time of their longest kernel: matrix products only.',
  }),
  column.number('gigabytesPerSecond', 'Traffic', {
    ...{ ...filled, unit: 'GB/s', digits: 3 },
    description: 'The fewest bytes that the ops must move over the time of their longest kernel.',
  }),
  column.percent('roofShare', 'Of the roof', {
    ...{ ...filled, emphasis: 'roof' },
    description:
      'The least time that the measured ceilings allow over the time taken. Above the roof: what the cache kept from ' +
      'device memory.',
  }),
];

/** The kernels by name: Nsight Systems' `cuda_gpu_kern_sum`, and what each reaches of the roof. */
export function kernelTable(profiles: Profiles, id = 'kernels'): Table {
  return profileTable<ReachedGroup>(
    {
      ...{ id, title: `Kernel summary${selectionTitle(profiles)}` },
      caption: 'All profiled steps together.',
      columns: [...kernelSummaryColumns, ...reachedColumns],
    },
    profiles,
    ({ selected }, { record }) => kernelSummary(selected, record.ceilings),
  );
}

const detail = { detail: true } as const;

/** The kernels by range: Nsight Systems' `nvtx_kern_sum`. */
export function rangeTable(profiles: Profiles, id: string): Table {
  return profileTable<ReturnType<typeof rangeSummary>[number]>(
    {
      ...{ id, title: `Kernels by range${selectionTitle(profiles)}` },
      caption: 'A kernel counts in every range around it. All profiled steps together.',
      columns: [
        column.text('range', 'NVTX Range', { emphasis: 'strong', overflow: 'shorten' }),
        column.text('name', 'Kernel Name', { overflow: 'shorten' }),
        column.text('style', 'Style', () => 'PushPop', detail),
        column.count('pid', 'PID', detail),
        column.count('tid', 'TID', detail),
        column.number('rangeInstances', 'NVTX Inst'),
        column.number('instances', 'Kern Inst'),
        ...[totalColumn, ...durationColumns],
      ],
    },
    profiles,
    ({ selected, result }) => rangeSummary(selected, result),
  );
}

/** The kernel with the longest total time of the forward pass, of both passes and of the step. */
export function topTables(profiles: Profiles): Table[] {
  return profileTables<ReturnType<typeof topsOfPhases>[number]>(
    {
      ...{ id: 'top-of-phases', title: 'The kernel that takes most time', saysShared: true },
      caption: 'By the total time of all kernels of one name.',
      columns: [
        phaseColumn,
        column.text('kernel', 'Kernel', ({ name }) => name, { overflow: 'shorten' }),
        column.percent('share', 'Of the kernel time', { emphasis: 'strong' }),
        column.number('instances', 'Instances', perStep),
        column.number('kernels', 'Of all instances', perStep),
      ],
    },
    profiles,
    ({ spans, result }) => topsOfPhases(spans, result.steps.length),
  );
}

export function matmulTables(profiles: Profiles): Table[] {
  return profileTables<ReturnType<typeof matmulShares>[number]>(
    {
      ...{ id: 'matmul-share', title: 'Matrix products against the rest', saysShared: true },
      caption: 'Kernel time of a step. A product includes the kernels that prepare its operands.',
      columns: [
        phaseColumn,
        column.number('kernels', 'Kernels', perStep),
        column.ms('kernelMs', 'All'),
        column.ms('matmulMs', 'Products'),
        column.ms('restMs', 'Rest'),
        column.percent('matmulShare', 'Share of products'),
      ],
    },
    profiles,
    ({ spans, result }) => matmulShares(spans, result.steps.length),
  );
}

/** None where no attention was in sight. */
export function attentionTables(profiles: Profiles): Table[] {
  const gigaflop = { unit: 'GFLOP', digits: 3 } as const;
  return profileTables<ReturnType<typeof attentionShares>[number]>(
    {
      ...{ id: 'attention', title: 'Softmax against matrix products inside attention', saysShared: true },
      caption: 'Kernel time and FLOPs of a step.',
      columns: [
        phaseColumn,
        column.ms('softmaxMs', 'Softmax'),
        column.ms('matmulMs', 'Products'),
        column.ratio('timeRatio', 'Time ratio'),
        column.number('softmaxGigaflops', 'Softmax', gigaflop),
        column.number('matmulGigaflops', 'Products', gigaflop),
        column.ratio('flopsRatio', 'FLOP ratio', { digits: 2 }),
      ],
    },
    profiles.filter(({ result }) => result !== null),
    ({ spans, result }) => attentionShares(spans, result.steps.length),
  );
}

function selectionTitle(profiles: Profiles): string {
  const [first] = profiles;
  if (!first) return '';
  const settings = settingsOf(first);
  const words = [
    ...(settings.phase === 'all' ? [] : [settings.phase]),
    ...(settings.range === null ? [] : [`ranges ${settings.range}`]),
  ];
  return words.length === 0 ? '' : `: ${words.join(', ')}`;
}

const nanoseconds = (key: keyof Durations, label: string, detail = false): ColumnOf<Durations> =>
  column.number<Durations>(key, label, (row) => row[key], { digits: 1, ...(detail && { detail }) });

// As Nsight Systems heads them.
const totalColumn = nanoseconds('totalNs', 'Total Time (ns)');
const durationColumns: readonly ColumnOf<Durations>[] = [
  nanoseconds('averageNs', 'Avg (ns)'),
  nanoseconds('medianNs', 'Med (ns)', true),
  nanoseconds('minNs', 'Min (ns)', true),
  nanoseconds('maxNs', 'Max (ns)', true),
  nanoseconds('stdNs', 'StdDev (ns)', true),
];

/** The columns of Nsight Systems' `cuda_gpu_kern_sum`; it has the name last, where narrow pages lose it. */
export const kernelSummaryColumns: readonly ColumnOf<KernelGroup>[] = [
  column.text('name', 'Name', { overflow: 'shorten' }),
  column.percent('timeShare', 'Time (%)', { emphasis: 'strong' }),
  totalColumn,
  column.number('instances', 'Instances'),
  ...durationColumns,
];
