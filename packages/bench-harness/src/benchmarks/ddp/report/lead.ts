import { ratioOfMedians, summarize } from '../../../measuring/statistics.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { measuredOf } from '../../../report/measurement.ts';
import type { ComparedCell } from '../../../report/ratio-chart.ts';
import { ddpCellParameters, isSharded } from '../parameters.ts';
import type { DdpMeasurement } from './measured.ts';

type Cells = readonly DdpMeasurement[];

/** Our steps compared with PyTorch's. */
function besidePeer(cells: Cells): ComparedCell[] {
  return measuredOf(cells).flatMap(({ cell, time, result: { times, peer } }) => {
    if (peer?.status !== 'ok') return [];
    const ratio = ratioOfMedians(times.stepMs, peer.stepMs);
    return [{ cell, ours: time!.median, theirs: time!.median / ratio.ratio, ratio }];
  });
}

const common = {
  parameters: ddpCellParameters,
  named: ['mode', 'execution', 'attention', 'optimizer', 'worldSize', 'size', 'context', 'batch', 'dtype'],
};

/** Our steps compared with a peer's, else passes with communication compared with those without; null for one rank alone. */
export function lead(cells: Cells): Lead | null {
  return peerLead(cells) ?? communicationLead(cells);
}

function peerLead(cells: Cells): Lead | null {
  const peers = new Set(
    measuredOf(cells).flatMap(({ cell: { mode }, result: { peer } }) =>
      peer?.status !== 'ok' ? [] : [isSharded(mode) ? 'FSDP2' : 'DistributedDataParallel'],
    ),
  );
  const name = [...peers].join(' and ');
  return ratioLead(
    {
      ...{ ...common, title: `A data-parallel step vs ${name}` },
      caption:
        'Time of a step on the slowest rank, the median, over that of PyTorch; a pale band is the 95 % interval.',
      ...{ ours: 'Roofline', theirs: 'PyTorch' },
    },
    besidePeer(cells),
    (range) => `A data-parallel step takes ${range} of the time of ${name}`,
  );
}

function communicationLead(cells: Cells): Lead | null {
  const passes = measuredOf(cells).flatMap(({ cell, result: { times } }): ComparedCell[] => {
    const { localMs, synchronizedMs } = times;
    if (cell.worldSize === 1 || !localMs || !synchronizedMs) return [];
    const theirs = summarize(localMs).median;
    const ratio = ratioOfMedians(synchronizedMs, localMs);
    return [{ cell, ours: theirs * ratio.ratio, theirs, ratio }];
  });
  return ratioLead(
    {
      ...{ ...common, title: 'Passes with communication vs without' },
      caption:
        'Time of a forward and backward pass on the slowest rank, the median; a pale band is the 95 % interval.',
      ...{ ours: 'With', theirs: 'Without' },
    },
    passes,
    (range) => `With communication a pass takes ${range} of its time without`,
  );
}
