import {
  formatBytes,
  formatPercent,
  formatRatio,
  type AllocationPlot,
  type Block,
  type Plot,
  type Point,
  type Report,
  type Section,
} from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { variantWords } from '../../e2e/parameters.ts';
import { reportHead } from '../../../report/report-head.ts';
import { interpretMemory, nameOf, overheadRatio, type MemoryMeasurement } from './interpret.ts';
import type { MemoryResult } from '../result.ts';
import { opByOpSentence } from './op-by-op.ts';
import { largestTable, liveTable, savedTable, sweepTable } from './tables.ts';
import { allocationsOf } from '../timeline.ts';

type MeasuredMemory = MemoryMeasurement & { readonly result: MemoryResult };

/** The report of memory records of one device; the step with the highest peak is reported in detail. */
export function memoryReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretMemory);
  const measured = measurements.filter((each): each is MeasuredMemory => each.result !== null);
  // A step with a backward pass has more to show than a higher peak without.
  const trained = measured.filter(({ cell }) => cell.mode !== 'forward');
  const [detailed] = (trained.length > 0 ? trained : measured).toSorted((a, b) => peakOf(b) - peakOf(a));
  return {
    ...reportHead('Memory of a training step', records),
    summary: summarySentences(measurements, measured, detailed),
    sections: [sweepSection(measurements), ...(detailed ? [detailSection(detailed)] : [])],
  };
}

function peakOf({ result }: MeasuredMemory): number {
  return result.peakAllocatedBytes;
}

function sweepSection(measurements: readonly MemoryMeasurement[]): Section {
  const opByOp = opByOpSentence(measurements.map(({ record }) => record)).map((text): Block => ({
    kind: 'note',
    tone: 'warning',
    text,
  }));
  return {
    id: 'memory',
    title: 'Memory',
    text: [
      'One step of each configuration was recorded after warm-up: every allocation and free of the device ' +
        'memory that tensors and workspaces use, with its op, range and calls. Times are those of the host, ' +
        'which queues the work.',
    ],
    blocks: [sweepTable(measurements), ...opByOp, peakPlot(measurements)],
  };
}

function peakPlot(measurements: readonly MemoryMeasurement[]): Plot {
  const sizes = new Set(measurements.map(({ cell }) => cell.size)).size > 1;
  const batches = new Set(measurements.map(({ cell }) => cell.batch)).size > 1;
  const seriesName = ({ cell }: MemoryMeasurement) =>
    [
      ...(sizes ? [cell.size] : []),
      ...(batches ? [`batch ${cell.batch}`] : []),
      ...[cell.mode, cell.dtype, ...variantWords(cell)],
    ].join(', ');
  const highest = Math.max(...measurements.map(({ result }) => result?.peakAllocatedBytes ?? 0));
  const unit = highest < 2 ** 30 ? { name: 'MiB', bytes: 2 ** 20 } : { name: 'GiB', bytes: 2 ** 30 };
  const point = ({ cell, result, record }: MemoryMeasurement): Point =>
    result
      ? { x: `${cell.context}`, y: result.peakAllocatedBytes / unit.bytes }
      : { x: `${cell.context}`, y: null, note: record.status };
  return {
    kind: 'plot',
    id: 'peak-by-context',
    title: 'Peak memory by context',
    x: { label: 'Context', scale: 'category' },
    y: { label: 'Peak allocated', unit: unit.name, scale: 'linear' },
    marks: 'bar',
    series: [...Map.groupBy(measurements, seriesName)].map(([name, group]) => ({
      name,
      points: group.map(point),
    })),
  };
}

function detailSection(measurement: MeasuredMemory): Section {
  const saved = savedTable(measurement);
  return {
    id: 'memory-over-a-step',
    title: `Memory over a step: ${nameOf(measurement)}`,
    blocks: [
      allocationPlot(measurement),
      liveTable(measurement),
      largestTable(measurement),
      ...(saved ? [saved] : []),
    ],
  };
}

function allocationPlot(measurement: MeasuredMemory): AllocationPlot {
  const { timeline } = measurement.result;
  const { count, largestBytes } = timeline.omitted;
  return {
    kind: 'allocations',
    id: 'allocations-over-a-step',
    title: 'Allocations over one step',
    caption:
      nameOf(measurement) +
      (count > 0 ? `. Left out: ${count} allocations of at most ${formatBytes(largestBytes)}.` : ''),
    allocations: allocationsOf(timeline),
    reserved: timeline.reserved,
  };
}

function summarySentences(
  measurements: readonly MemoryMeasurement[],
  measured: readonly MeasuredMemory[],
  detailed: MeasuredMemory | undefined,
): string[] {
  const spent = measurements.filter(({ record }) => record.status === 'out-of-memory');
  return [
    ...measured
      .toSorted((a, b) => peakOf(b) - peakOf(a))
      .slice(0, 1)
      .map(peakSentence),
    ...(detailed?.result.savedByBlock ? [savedSentence(detailed)] : []),
    ...overheadSentence(measured),
    ...(spent.length > 0 ? [`Out of memory: ${spent.map(nameOf).join('; ')}.`] : []),
  ];
}

function peakSentence(measurement: MeasuredMemory): string {
  const { peakAllocatedBytes, phases } = measurement.result;
  const top = phases.toSorted((a, b) => b.bytes - a.bytes)[0];
  const [first] = top?.live ?? [];
  const peak = `The highest peak is **${formatBytes(peakAllocatedBytes)}** (${nameOf(measurement)})`;
  if (!top || !first) return `${peak}.`;
  return `${peak}, in the ${top.phase} phase; ${formatPercent(first.bytes / top.bytes)} of it is ${first.what}.`;
}

function savedSentence(measurement: MeasuredMemory): string {
  const { savedByBlock, residual } = measurement.result;
  const { bytes, contributors } = savedByBlock!;
  const largest = contributors[0]!;
  return (
    `One block saves **${formatBytes(bytes)}** for the backward pass, ${formatRatio(bytes / residual.bytes)} the ` +
    `residual stream (${nameOf(measurement)}); ${formatPercent(largest.bytes / bytes)} of it is one tensor for the ` +
    `gradient of \`${largest.op}\`.`
  );
}

function overheadSentence(measured: readonly MeasuredMemory[]): string[] {
  if (measured.length === 0) return [];
  const ratios = measured.map(({ result }) => overheadRatio(result));
  const [low, high] = [formatRatio(Math.min(...ratios)), formatRatio(Math.max(...ratios))];
  const told = low === high ? low : `between ${low} and ${high}`;
  return [`A step takes ${told} as long with recording on as with it off.`];
}
