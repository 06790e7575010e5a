import type { Row } from '@roofline/reports';
import { quantile, ratioOfMedians, summarize, type RatioEstimate } from '../../../measuring/statistics.ts';
import { outcomeOf } from '../../../report/declared-table.ts';
import { workedOut, type Measurement } from '../../../report/measurement.ts';
import { bandwidths, factsOf, type Placement } from '../operations.ts';
import type { CollectiveCell } from '../parameters.ts';
import type { CollectiveResult, Timings } from '../result.ts';

export type Collective = Measurement<CollectiveCell, CollectiveResult>;
export type Side = 'ours' | 'torch';

/** One side of a cell; without timings where there is no result, for the reason in `outcome`. */
export interface CollectiveSide extends Collective {
  readonly side: Side;
  readonly timings: Timings;
  readonly outcome: Pick<Row, 'status' | 'error'>;
}

/** Each side that was to be measured. */
export const sidesOf = workedOut((cells: readonly Collective[]): CollectiveSide[] => {
  return cells.flatMap((each): CollectiveSide[] => {
    const { result, record } = each;
    if (result === null) {
      return [{ ...each, side: 'ours', timings: {}, outcome: outcomeOf(record) }];
    }
    const { ours, torch } = result;
    const own: CollectiveSide = { ...each, side: 'ours', timings: ours, outcome: { status: 'ok' } };
    if (torch === null) return [own];
    return [
      own,
      torch.status === 'ok'
        ? { ...each, side: 'torch', timings: torch.timings, outcome: { status: 'ok' } }
        : {
            ...{ ...each, side: 'torch', timings: {} },
            outcome: { status: torch.status, error: torch.error.message },
          },
    ];
  });
});

/** One placement of one side. */
function measured(cell: CollectiveCell, { maxMs, meanMs, wrong }: Timings[Placement] & object) {
  const { median: timeMs } = summarize(maxMs);
  const { algorithm, bus } = bandwidths(cell, timeMs);
  return {
    // Of the slowest rank: the median, and the values that a fifth of the samples lie below and above.
    ...{ timeMs, lowMs: quantile(maxMs, 0.2), highMs: quantile(maxMs, 0.8) },
    // The mean of all ranks; and bytes a second.
    ...{ meanMs: summarize(meanMs).median, algorithmBandwidth: algorithm, busBandwidth: bus, wrong },
  };
}
type Measured = ReturnType<typeof measured>;

const timingsOf = workedOut(({ cell, timings }: CollectiveSide) => {
  const all = Object.entries(timings).map(([placement, timing]) => [placement, measured(cell, timing)]);
  return Object.fromEntries(all) as Readonly<Partial<Record<Placement, Measured>>>;
});

/** Undefined where a side has no such timing. */
export function timingOf(side: CollectiveSide, placement: Placement): Measured | undefined {
  return timingsOf(side)[placement];
}

/** What is compared and plotted; undefined where there is no result. */
export function mainOf(side: CollectiveSide): Measured | undefined {
  return timingOf(side, factsOf[side.cell.op].compared);
}

/** PyTorch's time over ours: our bus bandwidth over its. Only ours has it. */
export const overPeer = workedOut(({ cell, side, result }: CollectiveSide): RatioEstimate | null => {
  const { compared } = factsOf[cell.op];
  const own = result?.ours[compared];
  const theirs = result?.torch?.status === 'ok' ? result.torch.timings[compared] : undefined;
  return side === 'ours' && own && theirs ? ratioOfMedians(theirs.maxMs, own.maxMs) : null;
});

/** `gloo`, `PyTorch gloo`. */
export function sideName({
  cell: { backend },
  side,
}: {
  readonly cell: Pick<CollectiveCell, 'backend'>;
  readonly side: Side;
}): string {
  return side === 'ours' ? backend : `PyTorch ${backend}`;
}
