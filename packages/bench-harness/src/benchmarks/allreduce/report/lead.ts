import { ratioLead, type Lead } from '../../../report/lead.ts';
import type { ComparedCell } from '../../../report/ratio-chart.ts';
import { collectiveParameters } from '../parameters.ts';
import { mainOf, overPeer, type CollectiveSide } from './measured.ts';

type Sides = readonly CollectiveSide[];

/** Our calls compared with those of torch.distributed. */
function besidePeer(sides: Sides): ComparedCell[] {
  return sides.flatMap((side) => {
    const [inverse, own] = [overPeer(side), mainOf(side)];
    if (!inverse || !own) return [];
    const ratio = { ratio: 1 / inverse.ratio, low: 1 / inverse.high, high: 1 / inverse.low };
    return [{ cell: side.cell, ours: own.timeMs, theirs: own.timeMs * inverse.ratio, ratio }];
  });
}

/** Null where no peer was measured. */
export function lead(sides: Sides): Lead | null {
  const cases = besidePeer(sides);
  const ops = new Set(cases.map(({ cell }) => cell['op']));
  const what = ops.size === 1 && ops.has('allreduce') ? 'An all-reduce takes' : 'Collectives take';
  return ratioLead(
    {
      title: 'Time of a collective vs torch.distributed',
      caption:
        'Time of a call on the slowest rank, the median, over that of PyTorch, both in turn; a pale band is the 95 % interval.',
      ...{ ours: 'Roofline', theirs: 'PyTorch', parameters: collectiveParameters },
      named: ['op', 'bytes', 'ranks', 'dtype', 'backend'],
    },
    cases,
    (range) => `${what} ${range} of the time of torch.distributed`,
  );
}
