import { type RatioEstimate, quantile, ratioOfMedians, summarize } from '../../../measuring/statistics.ts';
import type { CellRecord } from '../../../records/record.ts';
import { type Placement, bandwidths, factsOf, placements } from '../operations.ts';
import { type CollectiveCell, collectiveCell } from '../parameters.ts';
import { type CollectiveResult, type Timing, type Timings, collectiveResult } from '../result.ts';

export type Side = 'ours' | 'torch';

/** One placement of one side of a cell. */
export interface Measured {
  /** Of the slowest rank, in milliseconds: the median, and the values that a fifth of the samples lie below and above. */
  readonly timeMs: number;
  readonly lowMs: number;
  readonly highMs: number;
  /** The mean of all ranks. */
  readonly meanMs: number;
  readonly algorithmBandwidth: number;
  readonly busBandwidth: number;
  readonly wrong: number | null;
}

/** One side of a cell; without `measured` where there is no result, for the reason in `record` or `problem`. */
export interface CollectiveMeasurement {
  readonly cell: CollectiveCell;
  readonly record: CellRecord;
  readonly side: Side;
  readonly measured: Readonly<Partial<Record<Placement, Measured>>>;
  /** Of what is compared and plotted; null where there is no result. */
  readonly main: Measured | null;
  readonly roofBytesPerSecond: number | null;
  /** PyTorch's time over ours: our bus bandwidth over its. Only ours has it. */
  readonly overPeer: RatioEstimate | null;
  /** Why a peer has no result. */
  readonly problem: { readonly status: 'failed' | 'out-of-memory'; readonly message: string } | null;
}

export function interpretCollectives(records: readonly CellRecord[]): CollectiveMeasurement[] {
  return records.flatMap((record): CollectiveMeasurement[] => {
    const cell = collectiveCell.parse(record.parameters);
    if (record.status !== 'ok') return [measurementOf(cell, record, 'ours', {}, null)];
    const result = collectiveResult.parse(record.result);
    const ours = measurementOf(cell, record, 'ours', result.ours, result);
    if (result.torch === null) return [ours];
    const theirs = result.torch.status === 'ok' ? result.torch.timings : {};
    return [ours, measurementOf(cell, record, 'torch', theirs, result)];
  });
}

function measurementOf(
  cell: CollectiveCell,
  record: CellRecord,
  side: Side,
  timings: Timings,
  result: CollectiveResult | null,
): CollectiveMeasurement {
  const { compared } = factsOf[cell.op];
  const measured = Object.fromEntries(
    placements.flatMap((placement) => {
      const timing = timings[placement];
      return timing ? [[placement, measuredOf(cell, timing)]] : [];
    }),
  ) as Partial<Record<Placement, Measured>>;
  const { torch } = result ?? { torch: null };
  const theirs = torch?.status === 'ok' ? torch.timings[compared] : undefined;
  const own = timings[compared];
  return {
    ...{ cell, record, side, measured },
    main: measured[compared] ?? null,
    roofBytesPerSecond: result?.roofBytesPerSecond ?? null,
    overPeer: side === 'ours' && own && theirs ? ratioOfMedians(theirs.maxMs, own.maxMs) : null,
    problem:
      side === 'torch' && torch && torch.status !== 'ok'
        ? { status: torch.status, message: torch.error.message }
        : null,
  };
}

function measuredOf(cell: CollectiveCell, { maxMs, meanMs, wrong }: Timing): Measured {
  const { median: timeMs } = summarize(maxMs);
  const { algorithm, bus } = bandwidths(cell, timeMs);
  return {
    timeMs,
    lowMs: quantile(maxMs, 0.2),
    highMs: quantile(maxMs, 0.8),
    meanMs: summarize(meanMs).median,
    algorithmBandwidth: algorithm,
    busBandwidth: bus,
    wrong,
  };
}
