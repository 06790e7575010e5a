import type { RatioPlot } from '@roofline/reports';
import { ratioOfMedians } from '../../../measuring/statistics.ts';
import { measuredOf, workedOut } from '../../../report/measurement.ts';
import { ratioCharts, ratioRange, ratiosOf, type ComparedCell } from '../../../report/ratio-chart.ts';
import { ddpCellParameters } from '../parameters.ts';
import type { DdpMeasurement } from './measured.ts';

type Cells = readonly DdpMeasurement[];

/** Our steps beside those of DistributedDataParallel. */
const besidePeer = workedOut((cells: Cells): ComparedCell[] => {
  return measuredOf(cells).flatMap(({ cell, time, result: { times, peer } }) => {
    if (peer?.status !== 'ok') return [];
    const ratio = ratioOfMedians(times.stepMs, peer.stepMs);
    return [{ cell, oursMs: time!.median, theirsMs: time!.median / ratio.ratio, ratio }];
  });
});

/** What a page begins with; null where no peer was measured. */
export function leadChart(cells: Cells): RatioPlot | null {
  const [chart] = ratioCharts(
    {
      ...{ id: 'at-a-glance', title: 'A data-parallel step beside DistributedDataParallel' },
      caption:
        'Time of a step on the slowest rank, the median, over that of PyTorch; a pale band is the 95 % interval.',
      ...{ ours: 'Roofline', theirs: 'PyTorch', parameters: ddpCellParameters },
      named: ['mode', 'optimizer', 'worldSize', 'size', 'context', 'batch', 'dtype'],
    },
    besidePeer(cells),
  );
  return chart ?? null;
}

export function claim(cells: Cells): string | null {
  const ratios = ratiosOf(besidePeer(cells));
  return ratios.length === 0
    ? null
    : `A data-parallel step takes ${ratioRange(ratios)} of the time of DistributedDataParallel`;
}
