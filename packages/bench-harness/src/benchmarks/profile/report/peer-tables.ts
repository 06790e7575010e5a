import type { Table } from '@roofline/reports';
import type { ColumnOf, RowItem } from '../../../report/declared-table.ts';
import { column } from '../../../report/standard-columns.ts';
import { profiledOf, settingsOf, type Profiled, type ProfileMeasurement } from '../interpret.ts';
import { isMatrixProduct, phaseOf, phasesOf, type TimedKernel } from '../kernel-spans.ts';
import { isPeerProduct, PRODUCT_NAMES } from '../peer/peer-kernels.ts';
import { kernelSummaryColumns } from './tables.ts';
import { perStep, phaseColumn, profileTables, type Profiles } from './profile-table.ts';
import { matmulShare, type MatmulShare } from './shares.ts';
import { summarizeByName, type KernelGroup } from './summaries.ts';

/** Both sides in a phase. */
interface PhaseKernels {
  readonly phase: string;
  readonly ours: MatmulShare;
  readonly theirs: MatmulShare;
}

/** Our kernels compared with PyTorch's by phase, or why it has none, where PyTorch was asked. */
export function besidePeerTables(profiles: Profiles): Table[] {
  if (!profiles.some(({ result }) => result?.peer)) return [];
  return profileTables<PhaseKernels>(
    {
      ...{ id: 'beside-pytorch', title: 'Kernel time vs PyTorch', saysShared: true },
      caption:
        "Sums of a step, whatever the selection. On the CPU PyTorch's kernels are aten ops by their self time.",
      columns: [
        phaseColumn,
        column.ms('kernelMs', 'Ours', ({ ours }) => ours.kernelMs),
        column.ms('peerMs', 'PyTorch', ({ theirs }) => theirs.kernelMs),
        column.ratio('ratio', 'Ours / PyTorch', ratioOf, {
          emphasis: 'strong',
          description: "Our kernel time over PyTorch's: below 1 is less.",
        }),
        column.number('kernels', 'Our instances', ({ ours }) => ours.kernels, perStep),
        column.number('peerKernels', "PyTorch's instances", ({ theirs }) => theirs.kernels, perStep),
        column.percent('matmulShare', 'Our share of products', ({ ours }) => ours.matmulShare, {
          description: 'Of matrix products with the kernels that prepare their operands.',
        }),
        column.percent('peerMatmulShare', "PyTorch's share of products", ({ theirs }) => theirs.matmulShare, {
          description: PRODUCT_NAMES,
        }),
      ],
    },
    profiles,
    phasesOfBoth,
  );
}

function ratioOf({ ours, theirs }: PhaseKernels): number | null {
  return theirs.kernelMs === 0 ? null : ours.kernelMs / theirs.kernelMs;
}

/** One row a phase, and one for all of them. */
function phasesOfBoth({ spans, result, peer }: Profiled): (PhaseKernels & Partial<RowItem>)[] {
  if (result.peer && result.peer.status !== 'ok') {
    const { status, error } = result.peer;
    return [{ outcome: { status, error: error.message } } as PhaseKernels & Partial<RowItem>];
  }
  if (peer === null) return [];
  return [...phasesOf([...spans, ...peer.kernels]), 'all'].map((phase) => {
    const isOf = (kernel: Pick<TimedKernel, 'ranges'>) => phase === 'all' || phaseOf(kernel) === phase;
    return {
      phase,
      ours: matmulShare(spans.filter(isOf), result.steps.length, isMatrixProduct),
      theirs: matmulShare(peer.kernels.filter(isOf), peer.profile.steps.length, isPeerProduct),
    };
  });
}

/** PyTorch's kernels of one cell, with the columns of Nsight Systems' `cuda_gpu_kern_sum`. */
export function peerKernelTables(profile: ProfileMeasurement, id: string): Table[] {
  const peer = profiledOf(profile)?.peer;
  if (!peer) return [];
  const { phase, range } = settingsOf(profile);
  const { torch, device } = peer.profile;
  return profileTables(
    {
      ...{ id, columns: kernelSummaryColumns },
      title: `Kernel summary of PyTorch ${torch}${phase === 'all' ? '' : `: ${phase}`}`,
      caption:
        'All profiled steps together, by torch.profiler.' +
        (device === 'cpu' ? ' Aten ops by their self time.' : '') +
        (range === null ? '' : ' Phases are the only ranges it knows: --range does not select here.'),
    },
    [profile],
    () => summarizeByName(peer.selected),
  );
}

const TOP = 10;

/** A kernel of each side; the shorter side has none. */
interface TopKernels {
  readonly rank: number;
  readonly ours: KernelGroup | undefined;
  readonly theirs: KernelGroup | undefined;
  /** Profiled on each side. */
  readonly steps: { readonly ours: number; readonly theirs: number };
}

const strong = { emphasis: 'strong' } as const;

/** The columns of one side. */
function sideColumns(side: 'ours' | 'theirs', label: string): ColumnOf<TopKernels>[] {
  const key = (name: string) =>
    side === 'ours' ? name : `peer${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  const ofStep = (row: TopKernels, total: number | undefined) => total && total / row.steps[side];
  return [
    column.text(key('name'), label, (row) => row[side] && shortName(row[side].name), { overflow: 'shorten' }),
    column.ms(key('ms'), 'Time', (row) => ofStep(row, row[side] && row[side].totalNs / 1e6), strong),
    column.percent(key('share'), 'Time (%)', (row) => row[side]?.timeShare, { detail: true }),
    column.number(key('instances'), 'Instances', (row) => ofStep(row, row[side]?.instances), {
      ...{ ...perStep, detail: true },
    }),
  ];
}

/** The kernels with the longest total times, ours and PyTorch's side by side, where PyTorch's are known. */
export function topKernelsTables(profiles: Profiles): Table[] {
  if (!profiles.some((profile) => profiledOf(profile)?.peer)) return [];
  return profileTables<TopKernels>(
    {
      ...{ id: 'top-kernels', title: "Top kernels, ours and PyTorch's", saysShared: true },
      caption: `The first ${TOP} of each by total time; times and instances are of a step.`,
      columns: [
        column.number('rank', '#'),
        ...sideColumns('ours', 'Ours'),
        ...sideColumns('theirs', 'PyTorch'),
      ],
    },
    profiles,
    topKernels,
  );
}

function topKernels({ selected, result, peer }: Profiled): TopKernels[] {
  if (peer === null) return [];
  const ours = summarizeByName(selected).slice(0, TOP);
  const theirs = summarizeByName(peer.selected).slice(0, TOP);
  const steps = { ours: result.steps.length, theirs: peer.profile.steps.length };
  const count = Math.max(ours.length, theirs.length);
  return Array.from({ length: count }, (_, index) => ({
    ...{ rank: index + 1, ours: ours[index], theirs: theirs[index], steps },
  }));
}

const LONGEST_NAME = 48;

/** Without what C++ kernels share at the start, cut where it is long; the summaries have the whole name. */
export function shortName(name: string): string {
  const short = name
    .replace(/^void /, '')
    .replaceAll('at::native::', '')
    .replaceAll('(anonymous namespace)::', '');
  return short.length <= LONGEST_NAME ? short : `${short.slice(0, LONGEST_NAME - 1)}…`;
}
