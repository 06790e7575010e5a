import { formatDuration, formatPercent, type Plot } from '@roofline/reports';
import { distinctNames } from '../../../report/distinct-names.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { plotsOf, seriesOf } from '../../../report/series.ts';
import { profiledOverlap, timesOf, type DdpMeasurement } from './measured.ts';
import { hiddenShare } from './tables.ts';

type Cells = readonly DdpMeasurement[];

export function stepFindings(cells: Cells): string[] {
  const measured = measuredOf(cells).toSorted((a, b) => a.time!.median - b.time!.median);
  const { names } = distinctNames(measured.map(({ name }) => name));
  return measured.map((each, index) => {
    const { communicationMs, exposedMs } = timesOf(each);
    const adds = exposedMs === null ? '' : ` and adds ${formatDuration(exposedMs)}`;
    const communication =
      each.cell.worldSize === 1
        ? ''
        : `; its communication takes ${formatDuration(communicationMs)} alone${adds}`;
    const share = hiddenShare(each);
    const hidden = share === null ? '' : `; ${formatPercent(share)} of it ran alongside computation`;
    return `${names[index]!}: a step takes **${formatDuration(each.time!.median)}**${communication}${hidden}.`;
  });
}

/** How steps are timed, and where the profile of a pass has its communication from. */
export function method(cells: Cells): string[] {
  const sources = new Set(
    measuredOf(cells).flatMap((each) => {
      const overlap = profiledOverlap(each);
      return overlap?.status === 'ok' ? [overlap.communication] : [];
    }),
  );
  const profiled = [...sources].map(
    (source) =>
      'After them one pass is profiled on each rank. Its communication is ' +
      (source === 'kernels'
        ? 'the kernels of NCCL and of reductions over NVLink, and copies between GPUs, as CUPTI records them, those that wait for another rank too; '
        : "the works of Gloo's threads, each from when all ranks had come to its end; ") +
      'what of its time lies inside kernels of other streams, or on the CPU inside ops, is **hidden**.',
  );
  return [
    'Each step is timed on each rank, all beginning together, and counts as its slowest rank has it. Passes with ' +
      'and without communication run in turn.',
    ...profiled,
  ];
}

export function timePlot(cells: Cells): Plot[] {
  const measured = measuredOf(cells);
  const { names, shared } = distinctNames(measured.map(({ name }) => name));
  return plotsOf({
    ...{ id: 'ddp-times', title: 'Time of a step and of its communication', marks: 'bar' },
    ...(shared === '' ? {} : { caption: `Medians: ${shared}.` }),
    x: { label: 'Cell', scale: 'category' },
    y: { label: 'Time', unit: 'ms', scale: 'linear' },
    series: seriesOf(
      {
        x: (each) => names[measured.indexOf(each)]!,
        y: {
          step: ({ time }) => time!.median,
          'communication alone': (each) => timesOf(each).communicationMs,
          exposed: (each) => timesOf(each).exposedMs,
        },
      },
      measured,
    ),
  });
}
