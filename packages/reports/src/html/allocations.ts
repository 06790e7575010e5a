import { checkAllocations } from '../allocations/check.ts';
import { findPeak } from '../allocations/peak.ts';
import { allocationTable } from '../allocations/table.ts';
import type { AllocationPlot } from '../model.ts';
import { escapeXml } from '../text/xml.ts';
import { chartHtml, Names, roundTime } from './chart.ts';
import { colorGroups } from '../plot/color-groups.ts';
import type { ColorGroups } from '../plot/color-groups.ts';

/** What `templates/allocations.js` draws, in the order of allocation. Times in microseconds. */
export interface AllocationData {
  durationUs: number;
  peakBytes: number;
  names: string[];
  bytes: number[];
  starts: number[];
  /** Null for what was held to the end. */
  ends: (number | null)[];
  /** Indices of `names`; -1 for no category. */
  labels: number[];
  categories: number[];
  colors: number[];
  /** Each distinct stack once, as lines. */
  stacks: string[];
  /** Indices of `stacks`; -1 for none. */
  stackIndices: number[];
  reserved: { times: number[]; bytes: number[] };
}

/** Frames of a stack that a tooltip shows. */
const MOST_FRAMES = 12;

/** Memory over time as a zoomable chart, with what was live at the peak as a table below. */
export function allocationsHtml(plot: AllocationPlot): string {
  const groups = colorGroups(
    plot.allocations.map(({ label, category, bytes }) => ({ name: label, category, weight: bytes })),
  );
  const label = escapeXml(`Detail of ${plot.title}`);
  return chartHtml({
    kind: 'allocations',
    block: plot,
    tool: `<label class="detail">Detail <input type="range" min="0" max="1000" aria-label="${label}"></label>`,
    groups,
    data: allocationData(plot, groups),
    table: allocationTable(plot),
  });
}

export function allocationData(plot: AllocationPlot, groups: ColorGroups): AllocationData {
  checkAllocations(plot);
  const { reserved = [] } = plot;
  const ordered = plot.allocations.toSorted((a, b) => a.startUs - b.startUs);
  const times = [
    ...ordered.flatMap(({ startUs, endUs }) => [startUs, endUs ?? startUs]),
    ...reserved.map(([timeUs]) => timeUs),
  ];
  const start = times.reduce((least, time) => Math.min(least, time), times[0] ?? 0);
  const end = times.reduce((most, time) => Math.max(most, time), start);
  const names = new Names();
  const stacks = new Names();
  return {
    durationUs: roundTime(end - start) || 1,
    peakBytes: findPeak(ordered).bytes,
    bytes: ordered.map(({ bytes }) => bytes),
    starts: ordered.map(({ startUs }) => roundTime(startUs - start)),
    ends: ordered.map(({ endUs }) => (endUs === null ? null : roundTime(endUs - start))),
    labels: ordered.map(({ label }) => names.indexOf(label)),
    categories: ordered.map(({ category }) => (category === undefined ? -1 : names.indexOf(category))),
    colors: ordered.map(({ label, category }) => groups.colorOf({ name: label, category })),
    stackIndices: ordered.map(({ stack = [] }) =>
      stack.length === 0 ? -1 : stacks.indexOf(stack.slice(0, MOST_FRAMES).join('\n')),
    ),
    reserved: {
      times: reserved.map(([timeUs]) => roundTime(timeUs - start)),
      bytes: reserved.map(([, bytes]) => bytes),
    },
    names: names.list,
    stacks: stacks.list,
  };
}
