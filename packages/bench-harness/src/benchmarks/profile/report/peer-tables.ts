import type { Row, Table } from '@roofline/reports';
import type { Profiled, ProfileMeasurement } from '../interpret.ts';
import { isMatrixProduct, phaseOf, phasesOf } from '../kernel-spans.ts';
import { isPeerProduct, PRODUCT_NAMES } from '../peer/peer-kernels.ts';
import { matmulShare } from './shares.ts';
import { summarizeByName } from './summaries.ts';
import {
  cellColumns,
  kernelSummaryColumns,
  milliseconds,
  phaseColumn,
  cellsCaption,
  tableRows,
} from './table-parts.ts';

/** Our kernels compared with PyTorch's by phase, or why it has none; null where PyTorch was not asked. */
export function besidePeerTable(
  measurements: readonly ProfileMeasurement[],
  id = 'beside-pytorch',
): Table | null {
  if (!measurements.some(({ profiled }) => profiled?.result.peer)) return null;
  return {
    kind: 'table',
    id,
    title: 'Kernel time beside PyTorch',
    caption:
      "Sums of a step, whatever the selection. On the CPU PyTorch's kernels are aten ops by their self time." +
      cellsCaption(measurements),
    columns: [
      ...cellColumns(measurements),
      phaseColumn,
      milliseconds('kernelMs', 'Ours'),
      milliseconds('peerMs', 'PyTorch'),
      {
        key: 'ratio',
        label: 'Ours / PyTorch',
        kind: 'ratio',
        emphasis: 'strong',
        description: "Our kernel time over PyTorch's: below 1 is less.",
      },
      { key: 'kernels', label: 'Our instances', kind: 'number', digits: 1 },
      { key: 'peerKernels', label: "PyTorch's instances", kind: 'number', digits: 1 },
      {
        key: 'matmulShare',
        label: 'Our share of products',
        kind: 'percent',
        description: 'Of matrix products with the kernels that prepare their operands.',
      },
      {
        key: 'peerMatmulShare',
        label: "PyTorch's share of products",
        kind: 'percent',
        description: PRODUCT_NAMES,
      },
    ],
    rows: tableRows(measurements, ({ profiled }) => phaseRows(profiled!)),
  };
}

/** One row a phase, and one for all of them. */
export function phaseRows({ spans, result, peer }: Profiled): Row[] {
  if (result.peer && result.peer.status !== 'ok') {
    return [{ status: result.peer.status, error: result.peer.error.message }];
  }
  if (peer === null) return [];
  return [...phasesOf([...spans, ...peer.kernels]), 'all'].map((phase) => {
    const isOf = (kernel: Parameters<typeof phaseOf>[0]) => phase === 'all' || phaseOf(kernel) === phase;
    const ours = matmulShare(spans.filter(isOf), result.steps.length, isMatrixProduct);
    const theirs = matmulShare(peer.kernels.filter(isOf), peer.profile.steps.length, isPeerProduct);
    return {
      phase,
      kernelMs: ours.kernelMs,
      peerMs: theirs.kernelMs,
      ratio: theirs.kernelMs === 0 ? null : ours.kernelMs / theirs.kernelMs,
      kernels: ours.kernels,
      peerKernels: theirs.kernels,
      matmulShare: ours.matmulShare,
      peerMatmulShare: theirs.matmulShare,
    };
  });
}

/** PyTorch's kernels of one cell, with the columns of Nsight Systems' `cuda_gpu_kern_sum`; null without a peer. */
export function peerKernelTable({ profiled, settings }: ProfileMeasurement, id: string): Table | null {
  if (!profiled?.peer) return null;
  const { profile, selected } = profiled.peer;
  const phase = settings.phase === 'all' ? '' : `: ${settings.phase}`;
  return {
    kind: 'table',
    id,
    title: `Kernel summary of PyTorch ${profile.torch}${phase}`,
    caption:
      'All profiled steps together, by torch.profiler.' +
      (profile.device === 'cpu' ? ' Aten ops by their self time.' : '') +
      (settings.range === null ? '' : ' Phases are the only ranges it knows: --range does not select here.'),
    columns: [...kernelSummaryColumns],
    rows: summarizeByName(selected),
  };
}

const TOP = 10;

/** The kernels with the longest total times, ours and PyTorch's side by side; null where PyTorch's are not known. */
export function topKernelsTable(
  measurements: readonly ProfileMeasurement[],
  id = 'top-kernels',
): Table | null {
  if (!measurements.some(({ profiled }) => profiled?.peer)) return null;
  return {
    kind: 'table',
    id,
    title: "Top kernels, ours and PyTorch's",
    caption: `The first ${TOP} of each by total time; times and instances are of a step.${cellsCaption(measurements)}`,
    columns: [
      ...cellColumns(measurements),
      { key: 'rank', label: '#', kind: 'number' },
      { key: 'name', label: 'Ours', kind: 'text', overflow: 'shorten' },
      { ...milliseconds('ms', 'Time'), emphasis: 'strong' },
      { key: 'share', label: 'Time (%)', kind: 'percent', detail: true },
      { key: 'instances', label: 'Instances', kind: 'number', digits: 1, detail: true },
      { key: 'peerName', label: 'PyTorch', kind: 'text', overflow: 'shorten' },
      { ...milliseconds('peerMs', 'Time'), emphasis: 'strong' },
      { key: 'peerShare', label: 'Time (%)', kind: 'percent', detail: true },
      { key: 'peerInstances', label: 'Instances', kind: 'number', digits: 1, detail: true },
    ],
    rows: tableRows(measurements, ({ profiled }) => topRows(profiled!)),
  };
}

function topRows({ selected, result, peer }: Profiled): Row[] {
  if (peer === null) return [];
  const ours = summarizeByName(selected).slice(0, TOP);
  const theirs = summarizeByName(peer.selected).slice(0, TOP);
  return Array.from({ length: Math.max(ours.length, theirs.length) }, (_, index) => {
    const own = topEntry(ours[index], result.steps.length);
    const other = topEntry(theirs[index], peer.profile.steps.length);
    return {
      rank: index + 1,
      ...own,
      peerShare: other.share,
      peerMs: other.ms,
      peerInstances: other.instances,
      peerName: other.name,
    };
  });
}

function topEntry(row: Row | undefined, steps: number) {
  if (!row) return {};
  return {
    share: Number(row['timeShare']),
    ms: Number(row['totalNs']) / 1e6 / steps,
    instances: Number(row['instances']) / steps,
    name: shortName(String(row['name'])),
  };
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
