import { formatNumber, formatPercent, formatRatio } from '@roofline/reports';
import { listSome } from '../../../report/values-in-words.ts';
import { mainOf, overPeer, type CollectiveSide } from './measured.ts';
import { roofShare } from './tables.ts';

/** Ours, where they were measured. */
function measuredOurs(sides: readonly CollectiveSide[]): CollectiveSide[] {
  return sides.filter((each) => each.side === 'ours' && mainOf(each));
}

export function bestFinding(sides: readonly CollectiveSide[]): string[] {
  const busOf = (side: CollectiveSide) => mainOf(side)!.busBandwidth;
  const [best] = measuredOurs(sides).toSorted((a, b) => busOf(b) - busOf(a));
  if (!best) return [];
  const share = roofShare(best);
  const ofRoof = share === undefined ? '' : `, ${formatPercent(share)} of the roof`;
  return [`The bus carries at most **${formatNumber(busOf(best) / 1e9, 3)} GB/s**${ofRoof} (${best.name}).`];
}

export function peerFinding(sides: readonly CollectiveSide[]): string[] {
  const ratios = measuredOurs(sides).flatMap((side) => overPeer(side)?.ratio ?? []);
  if (ratios.length === 0) return [];
  const range = `**${formatRatio(Math.min(...ratios))}** to **${formatRatio(Math.max(...ratios))}**`;
  return [`Bus bandwidth over that of torch.distributed, in turn: ${range}.`];
}

export function wrongFinding(sides: readonly CollectiveSide[]): string[] {
  const measured = measuredOurs(sides);
  if (measured.length === 0) return [];
  const wrong = measured.filter(({ timings }) =>
    Object.values(timings).some((timing) => (timing.wrong ?? 0) > 0),
  );
  if (wrong.length === 0) return ['No element was wrong.'];
  return [`**Wrong elements**: ${listSome(wrong.map(({ name }) => name))}.`];
}
