import { formatBytes, type AllocationPlot, type Plot } from '@roofline/reports';
import { measuredOf } from '../../../report/measurement.ts';
import { plotsOf, seriesOf } from '../../../report/series.ts';
import { stepNames } from '../../e2e/parameters.ts';
import { snapshotName } from '../parameters.ts';
import { allocationsOf } from '../timeline.ts';
import type { MeasuredMemory, MemoryMeasurement } from './tables.ts';

export function peakPlot(cells: readonly MemoryMeasurement[]): Plot[] {
  const names = stepNames(cells, [
    ...(['size', 'batch', 'attention', 'execution', 'mode', 'dtype'] as const),
  ]);
  const highest = Math.max(...cells.map(({ peakBytes }) => peakBytes ?? 0));
  const [unit, bytes] = highest < 2 ** 30 ? ['MiB', 2 ** 20] : ['GiB', 2 ** 30];
  return plotsOf({
    ...{ id: 'peak-by-context', title: 'Peak memory by context', marks: 'bar' },
    ...(names.shared !== '' && { caption: `All cells: ${names.shared}.` }),
    x: { label: 'Context', scale: 'category' },
    y: { label: 'Peak allocated', unit: String(unit), scale: 'linear' },
    series: seriesOf(
      {
        name: ({ cell }) => names.name(cell),
        x: ({ cell }) => String(cell.context),
        y: ({ peakBytes }) => peakBytes && peakBytes / Number(bytes),
      },
      cells,
    ),
  });
}

/** What a step holds over time. */
export function allocationPlot(
  { result: { timeline }, name }: MeasuredMemory,
  id: string,
  title = 'Allocations over one step',
): AllocationPlot {
  const { count, largestBytes } = timeline.omitted;
  const left = count > 0 ? `. Left out: ${count} allocations of at most ${formatBytes(largestBytes)}.` : '';
  return {
    ...{ kind: 'allocations', id, title },
    caption: `${name}${left}`,
    allocations: allocationsOf(timeline),
    reserved: timeline.reserved,
  };
}

/** Of every cell: what a forward pass and a whole step hold, context by context. */
export function allocationPictures(cells: readonly MemoryMeasurement[]): AllocationPlot[] {
  return measuredOf(cells).map((each) => {
    const title = each.cell.mode === 'forward' ? 'Memory of a forward pass' : 'Memory of a whole step';
    return allocationPlot(each, snapshotName(each.cell).replace(/\.pickle$/, ''), title);
  });
}
