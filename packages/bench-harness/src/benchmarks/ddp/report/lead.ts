import { formatPercent } from '@roofline/reports';
import { ratioOfMedians, summarize } from '../../../measuring/statistics.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { measuredOf } from '../../../report/measurement.ts';
import type { ComparedCell } from '../../../report/ratio-chart.ts';
import { type DdpCell, ddpCellParameters, isSharded, tensorRanksOf } from '../parameters.ts';
import type { DdpMeasurement } from './measured.ts';
import { hiddenShare } from './tables.ts';

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

/**
 * Our steps compared with a peer's, else passes with communication compared with those without, else divided layers compared
 * with whole ones, else what of the communication is hidden; null for one rank alone.
 */
export function lead(cells: Cells): Lead | null {
  return peerLead(cells) ?? communicationLead(cells) ?? divisionLead(cells) ?? hiddenLead(cells);
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

function divisionLead(cells: Cells): Lead | null {
  const all = measuredOf(cells);
  const work = ({ shape, context, dtype, attention, execution, recompute, logits }: DdpCell, batch: number) =>
    JSON.stringify([shape, context, dtype, attention, execution, recompute, logits, batch]);
  const ofOneRank = new Map(
    all.filter(({ cell }) => cell.worldSize === 1).map((each) => [work(each.cell, each.cell.batch), each]),
  );
  const divided = all.flatMap(({ cell, result: { times } }): ComparedCell[] => {
    const alone = ofOneRank.get(work(cell, cell.batch * tensorRanksOf(cell)));
    if (tensorRanksOf(cell) === 1 || !alone) return [];
    const theirs = summarize(alone.result.times.stepMs).median;
    const ratio = ratioOfMedians(times.stepMs, alone.result.times.stepMs);
    return [{ cell, ours: theirs * ratio.ratio, theirs, ratio }];
  });
  return ratioLead(
    {
      ...{ ...common, title: 'Steps of divided layers vs those of one rank' },
      caption: 'Time of a step with as many tokens in all, the median; a pale band is the 95 % interval.',
      ...{ ours: 'Divided', theirs: 'One rank' },
    },
    divided,
    (range) => `With layers divided over ranks a step takes ${range} of the time of one rank`,
  );
}

function hiddenLead(cells: Cells): Lead | null {
  const shares = measuredOf(cells).flatMap((each) => hiddenShare(each) ?? []);
  if (shares.length === 0) return null;
  const ends = [...new Set([Math.min(...shares), Math.max(...shares)].map((share) => formatPercent(share)))];
  return { claim: `${ends.join(' to ')} of the communication runs alongside computation` };
}
