import { ratioOfMedians } from '../../../measuring/statistics.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { measuredOf } from '../../../report/measurement.ts';
import type { ComparedCell } from '../../../report/ratio-chart.ts';
import { ddpCellParameters } from '../parameters.ts';
import type { DdpMeasurement } from './measured.ts';

type Cells = readonly DdpMeasurement[];

/** Our steps beside those of DistributedDataParallel. */
function besidePeer(cells: Cells): ComparedCell[] {
  return measuredOf(cells).flatMap(({ cell, time, result: { times, peer } }) => {
    if (peer?.status !== 'ok') return [];
    const ratio = ratioOfMedians(times.stepMs, peer.stepMs);
    return [{ cell, ours: time!.median, theirs: time!.median / ratio.ratio, ratio }];
  });
}

/** Null where no peer was measured. */
export function lead(cells: Cells): Lead | null {
  return ratioLead(
    {
      title: 'A data-parallel step beside DistributedDataParallel',
      caption:
        'Time of a step on the slowest rank, the median, over that of PyTorch; a pale band is the 95 % interval.',
      ...{ ours: 'Roofline', theirs: 'PyTorch', parameters: ddpCellParameters },
      named: ['mode', 'optimizer', 'worldSize', 'size', 'context', 'batch', 'dtype'],
    },
    besidePeer(cells),
    (range) => `A data-parallel step takes ${range} of the time of DistributedDataParallel`,
  );
}
