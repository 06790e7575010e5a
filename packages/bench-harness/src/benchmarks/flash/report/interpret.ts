import type { Row } from '@roofline/reports';
import { torchAttentions } from '../../../attention/peer-kinds.ts';
import { attentionFlops, attentionWork, type Pass } from '../../../attention/work.ts';
import { floorMs } from '../../../measuring/ceilings.ts';
import {
  formatInterval,
  quantile,
  ratioOfMedians,
  summarize,
  type RatioEstimate,
} from '../../../measuring/statistics.ts';
import type { CellRecord } from '../../../records/record.ts';
import { outcomeOf } from '../../../report/cell-row.ts';
import { flashCell, flashSettings, type FlashCell } from '../parameters.ts';
import { flashResult, type Outcome, type Timed } from '../result.ts';

/** One attention in one pass of one cell. Measured parts are null unless the attention has samples. */
export interface FlashMeasurement {
  readonly cell: FlashCell;
  readonly record: CellRecord;
  readonly pass: Pass;
  /** Null for a cell that has no result. */
  readonly timed: Timed | null;
  readonly measured: Measured | null;
}

export interface Measured {
  readonly samplesMs: readonly number[];
  readonly medianMs: number;
  /** Below it lie a fifth of the samples, and above `highMs` another. */
  readonly lowMs: number;
  readonly highMs: number;
  readonly flopsPerSecond: number;
  readonly floorMs: number | null;
  /** Floor over median: 1 is the roof. */
  readonly roofShare: number | null;
  readonly peakBytes: number | null;
  /** The median of plain attention of the same side over this one; null where that was not measured. */
  readonly overPlain: number | null;
  /** Of our flash attention's median to this one, of PyTorch; null for ours, and where ours was not measured. */
  readonly ratio: RatioEstimate | null;
}

/** All attentions and passes of the records; a cell without a result is there once for each pass. */
export function interpretFlash(records: readonly CellRecord[]): FlashMeasurement[] {
  return records.flatMap((record): FlashMeasurement[] => {
    const cell = flashCell.parse(record.parameters);
    const { passes } = flashSettings.parse(record.settings);
    if (record.status !== 'ok') {
      return passes.map((pass) => ({ cell, record, pass, timed: null, measured: null }));
    }
    const { timed } = flashResult.parse(record.result);
    return passes.flatMap((pass) =>
      timed.map((each) => ({
        cell,
        record,
        pass,
        timed: each,
        measured: measuredOf(each, timed, pass, cell, record),
      })),
    );
  });
}

function measuredOf(
  { side, outcome }: Timed,
  all: readonly Timed[],
  pass: Pass,
  cell: FlashCell,
  { ceilings }: CellRecord,
): Measured | null {
  const samplesMs = samplesOf(outcome, pass);
  if (outcome.status !== 'ok' || samplesMs === null) return null;
  const medianMs = quantile(samplesMs, 0.5);
  const floor = ceilings && floorMs(attentionWork(cell, pass), ceilings, cell.dtype);
  const others = (whose: Timed['side'], attention: string): readonly number[] | null => {
    const other = all.find((each) => each.side === whose && each.attention === attention);
    return other ? samplesOf(other.outcome, pass) : null;
  };
  const [plain, flash] = [others(side, 'plain'), others('ours', 'flash')];
  return {
    samplesMs,
    medianMs,
    lowMs: quantile(samplesMs, 0.2),
    highMs: quantile(samplesMs, 0.8),
    flopsPerSecond: (attentionFlops(cell, pass) * 1000) / medianMs,
    floorMs: floor,
    roofShare: floor === null ? null : floor / medianMs,
    peakBytes: outcome.peakBytes,
    overPlain: plain && summarize(plain).median / medianMs,
    ratio: side === 'torch' && flash ? ratioOfMedians(flash, samplesMs) : null,
  };
}

/** Null where there are none. */
function samplesOf(outcome: Outcome, pass: Pass): readonly number[] | null {
  return outcome.status === 'ok' ? (outcome.samplesMs[pass] ?? null) : null;
}

/** As tables name it: `flash`, `PyTorch cuDNN`. */
export function nameOf(timed: Timed): string {
  return timed.side === 'ours' ? timed.attention : torchAttentions[timed.attention];
}

/** The flat row of tables and of `--json`. Times in milliseconds, sizes in bytes, shares as fractions. */
export function flashRow({ cell, record, pass, timed, measured }: FlashMeasurement): Row {
  const { dtype, batch, heads, headDimension, sequence, mask = 'causal' } = cell;
  const shape = { dtype, batch, heads, headDimension, sequence, mask };
  if (timed === null) return { ...shape, implementation: null, pass, ...outcomeOf(record) };
  const { outcome, side, attention } = timed;
  return {
    ...shape,
    implementation: nameOf(timed),
    ...{ side, attention, pass },
    status: outcome.status,
    ...(outcome.status !== 'ok' && { error: outcome.reason }),
    ...(measured && {
      medianMs: measured.medianMs,
      lowMs: measured.lowMs,
      highMs: measured.highMs,
      samples: measured.samplesMs.length,
      teraflopsPerSecond: measured.flopsPerSecond / 1e12,
      gigaflopsPerSecond: measured.flopsPerSecond / 1e9,
      floorMs: measured.floorMs,
      roofShare: measured.roofShare,
      overPlain: measured.overPlain,
      peakBytes: measured.peakBytes,
      ...(measured.ratio && {
        ratio: measured.ratio.ratio,
        ratioLow: measured.ratio.low,
        ratioHigh: measured.ratio.high,
        ratioInterval: formatInterval(measured.ratio),
      }),
    }),
  };
}
